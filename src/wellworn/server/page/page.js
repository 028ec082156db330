// Keys: "/" goes to the search box, "j" and "k" walk through a list, and a question is decided by the key on its button.
"use strict";

const typing = (element) => element.closest("input, textarea, select") !== null;

document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const items = [...document.querySelectorAll("[data-item]")].filter((item) => item.offsetParent !== null);
  const current = items.findIndex((item) => item.contains(document.activeElement));
  if (event.key === "/") {
    const box = document.getElementById("q");
    event.preventDefault();
    if (box) box.focus();
    else document.querySelector(".brand").click();
  } else if ((event.key === "j" || event.key === "k") && items.length) {
    const next = event.key === "j" ? Math.min(current + 1, items.length - 1) : Math.max(current - 1, 0);
    items[next].focus();
    items[next].scrollIntoView({ block: "nearest" });
  } else if (current >= 0) {
    const button = items[current].querySelector(`button[data-key="${CSS.escape(event.key)}"]`);
    if (button) button.click();
  }
});
