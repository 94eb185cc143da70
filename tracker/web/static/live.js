// Reloads the page's main part when the tracker announces a change. Pages work without it.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  let loading = false;
  const load = async () => {
    if (loading || document.hidden || main.contains(document.activeElement) && document.activeElement.closest("form")) return;
    loading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected) return location.reload();
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main[data-live]");
      if (answer.ok && fresh) {
        const open = [...main.querySelectorAll("details")].map((d) => d.open);
        main.replaceChildren(...fresh.childNodes);
        main.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? d.open; });
      }
    } catch { /* the tracker is unavailable; the stream reconnects */ } finally {
      loading = false;
    }
  };
  const stream = new EventSource(main.dataset.live);
  stream.onmessage = load;
  stream.addEventListener("end", () => { stream.close(); load(); });
  document.addEventListener("visibilitychange", load);
})();
