// The page follows changes: it fetches changed parts again while it is visible. Everything is also
// there without this script.
"use strict";
(() => {
  const main = () => document.getElementById("live");
  const stale = document.getElementById("stale");
  const every = 1000 * Number(main().dataset.every || 0);
  if (!every) return; // what a form was answered with
  let last = Date.now(), failed = 0, next = 0;
  const busy = () => main().contains(document.activeElement) && /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  const turn = () => {
    if (document.hidden || busy() || Date.now() < next) return;
    next = Date.now() + every * Math.min(2 ** failed, 12);
    htmx.ajax("GET", location.href, { target: "#live", select: "#live", swap: "outerHTML" });
  };
  setInterval(turn, 1000);
  document.addEventListener("visibilitychange", () => { next = 0; turn(); }); // it has slept
  const old = () => { failed++; stale.hidden = Date.now() - last < 3 * every; };
  document.body.addEventListener("htmx:afterSwap", () => { last = Date.now(); failed = 0; stale.hidden = true; });
  for (const e of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) document.body.addEventListener(e, old);
  document.body.addEventListener("htmx:responseError", (e) => { if (e.detail.xhr.status === 401) location.reload(); }); // to sign in again
  next = Date.now() + every;
})();
