/** Remember, recall, say what helped, forget. Needs a running `wellworn serve`. */
import { Client, WellwornError } from "wellworn";

const ada = new Client(process.env.WELLWORN_URL ?? "http://127.0.0.1:8765").forUser("ada");

const [id] = await ada.remember("Ada prefers tokio over async-std.", { kind: "preference" });
const recall = await ada.recall("Which async runtime does Ada prefer?");
console.log(recall.hits[0]?.entry.text);
await ada.outcome(recall.id, { cited: [0] });

const monday = ada.session("monday");
await monday.add("user", "My bicycle is a green Brompton.");
console.log((await monday.turns()).length, "turn");

await ada.forget([id!]);
try {
  await ada.get(id!);
} catch (error) {
  if (error instanceof WellwornError) console.log(error.kind);
}
