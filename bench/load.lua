-- The load of `python -m bench.service`, as wrk runs it. Arguments: a folder with queries.txt and texts.txt, one a line;
-- the share of writes; "hello" for the bare server. Each acknowledged id goes to a file of the thread. Prints one JSON line.
local threads = {}

function setup(thread)
  thread:set("number", #threads + 1)
  table.insert(threads, thread)
end

local function lines(path)
  local found = {}
  for line in io.lines(path) do found[#found + 1] = line end
  return found
end

function init(args)
  folder, writes, hello = args[1], tonumber(args[2]), args[3] == "hello"
  ok, acknowledged, busy, failed, sent = 0, 0, 0, 0, 0
  if hello then return end
  queries, texts = lines(folder .. "/queries.txt"), lines(folder .. "/texts.txt")
  ids = io.open(folder .. "/ids-" .. number .. ".txt", "a")
  ids:setvbuf("line")
  run = folder:match("[^/]+$") .. os.time()
  math.randomseed(number)
end

function request()
  if hello then return wrk.format("GET", "/") end
  sent = sent + 1
  local headers = {["content-type"] = "application/json"}
  if math.random() < writes then
    local text = texts[math.random(#texts)]:gsub("[.?]$", "") .. " as number " .. number .. "x" .. sent .. " " .. run
    return wrk.format("POST", "/v1/entries", headers, '{"text": "' .. text .. '"}')
  end
  return wrk.format("POST", "/v1/recall", headers, '{"query": "' .. queries[math.random(#queries)] .. '"}')
end

function response(status, headers, body)
  if status == 200 then
    ok = ok + 1
  elseif status == 201 then
    acknowledged = acknowledged + 1
    ids:write(body:match('"ids":%["([^"]+)"'), "\n")
  elseif status == 503 and (headers["retry-after"] or headers["Retry-After"]) then
    busy = busy + 1
  else
    failed = failed + 1
  end
end

function done(summary, latency, requests)
  local sums = {ok = 0, acknowledged = 0, busy = 0, failed = 0}
  for _, thread in ipairs(threads) do
    for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
  end
  local broken = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  print(string.format(
    '{"ok": %d, "acknowledged": %d, "busy": %d, "failed": %d, "broken": %d, "per_s": %.1f, "p50_ms": %.2f, "p95_ms": %.2f, "p99_ms": %.2f}',
    sums.ok, sums.acknowledged, sums.busy, sums.failed, broken, summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3))
end
