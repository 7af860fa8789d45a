"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = id => document.getElementById(id);
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const of = i => colour("c" + i % 6);
  const part = (x, by, unit) => (Math.round(10 * x / by) / 10) + " " + unit;
  const time = s => s == null ? "" : s < 120 ? part(s, 1, "s") : s < 7200 ? part(s, 60, "min") : s < 172800 ? part(s, 3600, "h") : part(s, 86400, "d");
  const charts = [];
  const width = () => Math.max(280, Math.min(document.body.clientWidth - 34, 1100));
  $("charts").hidden = false;

  const axis = (values, size) => ({ values: (u, ticks) => ticks.map(v => v == null ? null : values(v)), size: size || 50, stroke: colour("text"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } });
  // steps in which people count time
  const incrs = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000, 17280000];
  const times = () => Object.assign(axis(time), { incrs, space: 70 });
  const sync = { key: "time", scales: ["x", null] };

  function lines(id, x, rows, options) {
    const u = new uPlot({
      width: width(), height: 240, cursor: { sync: options.x ? undefined : sync, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: options.log ? { distr: 3, range: (u, least, most) => [1, Math.max(10, most)] } : { range: (u, least, most) => [0, Math.max(most * 1.05, 1)] } },
      axes: [options.x ? axis(v => v + " %") : times(), options.y === time ? Object.assign(axis(time, 70), { incrs }) : axis(options.y, 70)],
      series: [{ label: options.x || "time", value: (u, v) => v == null ? "" : options.x ? v + " %" : time(v) }].concat(data.runs.map((r, i) => ({
        label: r.name, stroke: of(i), width: 1.5, points: { show: false }, value: (u, v) => v == null ? "" : options.y(v) }))),
    }, [x].concat(rows), $(id));
    charts.push(u);
  }

  let shown = 0, byNode = true;
  function gantt() {
    const r = data.runs[shown], end = data.end || 1;
    const high = byNode ? r.nodes : Math.max(r.rank.length ? r.rank[r.rank.length - 1] + 1 : 1, 1);
    const tint = new Map();
    const fill = k => { // neighbours differ
      const key = r.kind[k] ? "e" : k % 5;
      if (!tint.has(key)) tint.set(key, key === "e" ? colour("c1") : "hsl(" + [205, 215, 195, 225, 185][key] + " 45% " + [45, 55, 62, 50, 58][key] + "%)");
      return tint.get(key);
    };
    function draw(u) {
      const c = u.ctx, b = u.bbox;
      const X = s => u.valToPos(s, "x", true), Y = n => u.valToPos(n, "y", true);
      c.save();
      c.beginPath(); c.rect(b.left, b.top, b.width, b.height); c.clip();
      if (byNode && r.shade) {
        const wide = r.span / r.across, down = r.shade.length / r.across, tall = r.nodes / down;
        c.fillStyle = colour("faint");
        for (let i = 0; i < r.shade.length; i++) {
          const n = r.shade.charCodeAt(i) - 48;
          if (!n) continue;
          const x = i % r.across, y = (i - x) / r.across;
          c.globalAlpha = n / 9 * .45;
          const x0 = X(x * wide), y0 = Y((y + 1) * tall);
          c.fillRect(x0, y0, X((x + 1) * wide) - x0 + .5, Y(y * tall) - y0 + .5);
        }
        c.globalAlpha = 1;
      }
      const least = u.scales.x.min, most = u.scales.x.max;
      if (byNode) {
        for (let i = 0; i < r.rj.length; i++) {
          if (r.rt[i] > most || r.rt[i] + r.rd[i] < least) continue;
          const x = X(r.rt[i]), y = Y(r.rn[i] + r.rc[i]), w = Math.max(X(r.rt[i] + r.rd[i]) - x, .6), h = Math.max(Y(r.rn[i]) - y, .6);
          c.fillStyle = fill(r.rj[i]);
          c.fillRect(x, y, w > 4 ? w - 1 : w, h > 4 ? h - 1 : h);
        }
      } else {
        const tall = k => { const y = Y(r.rank[k] + 1); return [y, Math.max(Y(r.rank[k]) - y, 1)]; };
        c.fillStyle = colour("faint");
        c.globalAlpha = .4;
        for (let k = 0; k < r.ids.length; k++) {
          const [y, h] = tall(k), x = X(r.submit[k]);
          c.fillRect(x, y + h * .4, X(r.start[k]) - x, Math.max(h * .2, .5));
        }
        c.globalAlpha = 1;
        for (let k = 0; k < r.ids.length; k++) {
          const [y, h] = tall(k), x = X(r.start[k]);
          c.fillStyle = fill(k);
          c.fillRect(x, y, Math.max(X(r.ends[k]) - x, 1), h > 4 ? h - 1 : h);
        }
        c.strokeStyle = colour("text");
        c.lineWidth = 1;
        for (let i = 0; i < r.pj.length; i++) {
          const [y, h] = tall(r.pj[i]), x = X(r.pt[i]);
          if (h > 3) c.strokeRect(x, y + .5, X(r.pt[i] + r.pd[i]) - x, h - 2);
        }
      }
      c.restore();
    }
    const job = k => "job " + r.ids[k] + (r.kind[k] ? " (evolving)" : "") + ": submitted " + time(r.submit[k]) + ", waited " + time(r.start[k] - r.submit[k]) + ", ran " + time(r.ends[k] - r.start[k]);
    function look(u) {
      const { left, top } = u.cursor;
      if (left == null || left < 0) return;
      const t = u.posToVal(left, "x"), n = u.posToVal(top, "y");
      let text = "";
      if (byNode) {
        for (let i = r.rj.length - 1; i >= 0; i--) if (r.rt[i] <= t && t < r.rt[i] + r.rd[i] && r.rn[i] <= n && n < r.rn[i] + r.rc[i]) { text = job(r.rj[i]) + "; node" + (r.rc[i] > 1 ? "s " + r.rn[i] + " to " + (r.rn[i] + r.rc[i] - 1) : " " + r.rn[i]); break; }
      } else {
        const k = r.rank.indexOf(Math.floor(n));
        if (k >= 0) text = job(k);
      }
      $("what").textContent = text || part(t < 0 ? 0 : t, end > 172800 ? 86400 : 3600, end > 172800 ? "d" : "h");
    }
    $("gantt").replaceChildren();
    const u = new uPlot({
      width: width(), height: 460, legend: { show: false }, cursor: { drag: { x: true, y: true, uni: 20 }, points: { show: false } },
      scales: { x: { time: false, range: (u, a, b) => a == null || a === b ? [0, end] : [a, b] }, y: { range: (u, a, b) => a == null || a === b ? [0, high] : [a, b] } },
      axes: [times(), axis(v => v, 60)],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { drawAxes: [draw], setCursor: [look] },
    }, [[0, end], [0, high]], $("gantt"));
    charts.push(u);
    window.gantt = u; // for who looks
    const all = r.ids.length === r.of;
    $("what").textContent = all ? r.ids.length + " jobs" : "the " + r.ids.length + " jobs of " + r.of + " with the most node-seconds (" + r.part + " % of all)" + (byNode ? "; grey: all others" : "");
  }
  function choose() {
    const box = $("choose");
    box.replaceChildren();
    const button = (text, pressed, act) => {
      const b = document.createElement("button");
      b.textContent = text;
      b.setAttribute("aria-pressed", pressed);
      b.addEventListener("click", () => { act(); draw(); });
      box.append(b, " ");
    };
    button("by node", byNode, () => byNode = true);
    button("by job", !byNode, () => byNode = false);
    if (data.runs.length > 1) data.runs.forEach((r, i) => button(r.name, i === shown, () => shown = i));
  }

  function draw() {
    for (const u of charts.splice(0)) u.destroy();
    choose();
    gantt();
    lines("used", data.x, data.runs.map(r => r.used), { y: v => Math.round(v * 10) / 10 + " %" });
    if (data.power) lines("power", data.x, data.runs.map(r => data.x.map((_, i) => r.power && i < r.power.length ? r.power[i] : null)), { y: v => Math.round(v * 100) / 100 + " kW" });
    lines("waiting", data.x, data.runs.map(r => r.waiting), { y: v => Math.round(v * 10) / 10 + "" });
    lines("wait", data.q, data.runs.map(r => r.wait), { y: time, x: "of jobs" });
    lines("slow", data.q, data.runs.map(r => r.slow), { y: v => v + "", x: "of jobs", log: true });
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let later;
  addEventListener("resize", () => { clearTimeout(later); later = setTimeout(draw, 150); });
})();
