// Series of nodes over time, drawn by uPlot; what they say is in a table without this.
"use strict";
(() => {
  const charts = new Map(); // by name: they outlive fetched parts
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  // where the charts above it begin, so that a time is at the same place in all
  const left = el => { const at = document.querySelector(".chart > div, .three > .bars"); return Math.max(44, at ? at.getBoundingClientRect().left - el.getBoundingClientRect().left : 0); };
  const wide = el => Math.max(200, el.clientWidth);
  function draw() {
    for (const el of document.querySelectorAll(".series[data-series]")) {
      const data = JSON.parse(el.dataset.series), by = (data.to - data.from) / data.lines[0].nodes.length;
      const clock = t => { const s = new Date((t + data.zone) * 1000).toISOString(); return data.to - data.from > 172800 ? s.slice(5, 10) : s.slice(11, data.to - data.from < 1200 ? 19 : 16); };
      const x = data.lines[0].nodes.map((_, i) => data.from + (i + .5) * by);
      const rows = [x].concat(data.lines.map(l => l.nodes));
      const old = charts.get(el.id);
      if (old) {
        old.data = data; old.clock = clock;
        el.replaceChildren(old.u.root);
        old.u.setData(rows);
        continue;
      }
      const chart = { data, clock };
      const axis = more => Object.assign({ stroke: () => colour("faint"), grid: { stroke: () => colour("rule"), width: 1 }, ticks: { stroke: () => colour("rule"), width: 1 }, font: "11px system-ui, sans-serif" }, more);
      chart.u = new uPlot({
        width: wide(el), height: 180, padding: [null, 0, null, 0], cursor: { drag: { x: false, y: false } },
        scales: { x: { time: false, range: () => [chart.data.from, chart.data.to] }, y: { range: (u, least, most) => [0, Math.max(most * 1.05, 1)] } },
        axes: [axis({ size: 28, splits: () => chart.data.marks.map(m => m.at), values: () => chart.data.marks.map(m => m.text) }), axis({ size: u => left(u.root.parentNode || el), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000] })],
        series: [{ label: "at", value: (u, t) => t == null ? "–" : chart.clock(t) }].concat(data.lines.map(l => ({ label: l.name, stroke: () => colour("c" + l.color), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (u, n) => n == null ? "–" : n }))),
        hooks: { draw: [u => {
          const at = u.valToPos(chart.data.now, "x", true), b = u.bbox;
          if (chart.data.now <= chart.data.from || chart.data.now >= chart.data.to) return;
          u.ctx.strokeStyle = colour("now"); u.ctx.lineWidth = 1.5 * devicePixelRatio;
          u.ctx.beginPath(); u.ctx.moveTo(at, b.top); u.ctx.lineTo(at, b.top + b.height); u.ctx.stroke();
        }] },
      }, rows, el);
      charts.set(el.id, chart);
    }
  }
  draw();
  document.body.addEventListener("htmx:afterSwap", draw);
  addEventListener("resize", () => { for (const c of charts.values()) if (c.u.root.parentNode) c.u.setSize({ width: wide(c.u.root.parentNode), height: 180 }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const c of charts.values()) c.u.redraw(); });
})();
