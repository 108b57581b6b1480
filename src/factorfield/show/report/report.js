// Draws a report's pictures as SVG from the numbers embedded in the page. No library, no request.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("numbers").textContent);
  const BLUE = "#0072B2", ORANGE = "#D55E00", BLACK = "#222", GREY = "#777", BAND = page.band, MANY = 50;
  const MAPS = { // anchors at equal steps: viridis, cividis, red-blue
    mean: "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
    std: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
    error: "2166ac 67a9cf d1e5f0 f7f7f7 fddbc7 ef8a62 b2182b",
  };

  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }
  function escaped(text) {
    return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  }
  function short(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e5 || size < 1e-3 ? value.toExponential(3).replace(/\.?0+e/, "e") : String(+value.toPrecision(4));
    return text.replace(/-/g, "−").replace("e+", "e");
  }
  const italic = (name) => (name.length < 3 ? `<tspan font-style="italic">${escaped(name)}</tspan>` : escaped(name));
  const labelled = (name, unit) => italic(name) + (unit ? ` (${escaped(unit)})` : "");
  function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    return low <= high ? [low, high] : [0, 1];
  }
  const order = (value) => Math.floor(Math.log10(value) + 1e-9);
  function ticks(low, high, most) { // {marks: [position, text], factor}: as many digits as the steps differ in
    const rough = (high - low) / Math.max(most, 1), base = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * base).find((s) => s >= rough * 0.999) || base * 10;
    const largest = Math.max(Math.abs(low), Math.abs(high)), power = largest >= 1e4 || largest < 1e-3 ? order(largest) : 0;
    const halves = Math.abs(step / 10 ** order(step) - 2.5) < 1e-6 ? 1 : 0;
    const decimals = Math.min(Math.max(power - order(step) + halves, 0), 12), marks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
      marks.push([k * step, k === 0 ? "0" : (k * step / 10 ** power).toFixed(decimals).replace("-", "−")]);
    }
    const raised = String(power).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(c)]);
    return { marks, factor: power ? `×10${raised}` : "" };
  }
  const DIGIT = 7.3; // pixels
  const widest = (marks) => DIGIT * Math.max(1, ...marks.map(([, said]) => said.length));

  // -- a frame with axes; everything is drawn in the element's own pixels, so that text never shrinks
  // lines and maps over time take the width; a map of the plane (square: the scales of its axes are equal) is taller
  function frame(element, xs, ys, labels, ratio, right, square) {
    let [x0, x1] = xs, [y0, y1] = ys;
    if (!(x1 > x0)) { x0 -= 0.5; x1 += 0.5; }
    if (!(y1 > y0)) { const reach = Math.abs(y0) || 1; y0 -= 0.05 * reach; y1 += 0.05 * reach; }
    const width = Math.max(260, Math.floor(element.clientWidth || 600)), top = 22, bottom = 42;
    const most = square ? Math.max(380, 0.6 * width) : 380;
    const tall = (left) => Math.round(Math.min((width - left - (right || 20)) * ratio, most));
    const up = ticks(y0, y1, tall(60) / 40), left = 34 + widest(up.marks); // the label stands beyond the numbers
    const room = width - left - (right || 20), high = tall(left); // half a number stands beyond the end
    const inner = square ? Math.min(room, high / ratio) : room;
    const across = ticks(x0, x1, inner / 65);
    const X = (v) => left + ((v - x0) / (x1 - x0)) * inner, Y = (v) => top + high - ((v - y0) / (y1 - y0)) * high;
    const parts = [];
    const text = (x, y, body, anchor, extra) =>
      parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" ${extra || ""}>${body}</text>`);
    for (const [v, said] of across.marks) {
      parts.push(`<path d="M${X(v).toFixed(1)} ${top + high}v5" stroke="${BLACK}"/>`);
      text(X(v), top + high + 18, said, "middle");
    }
    for (const [v, said] of up.marks) {
      parts.push(`<path d="M${left} ${Y(v).toFixed(1)}h-5" stroke="${BLACK}"/>`);
      text(left - 8, Y(v) + 4, said, "end");
    }
    parts.push(`<path d="M${left} ${top}V${top + high}H${left + inner}" fill="none" stroke="${BLACK}"/>`);
    text(left + inner / 2, top + high + 36, labels[0], "middle");
    text(14, top + high / 2, labels[1], "middle", `transform="rotate(-90 14 ${top + high / 2})"`);
    if (across.factor) text(left + inner, top + high + 36, across.factor, "end");
    if (up.factor) text(left - 8, top - 8, up.factor, "start");
    const finish = (body, name) => {
      element.innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top + high + bottom}" ` +
        `role="img" aria-label="${escaped(name)}" font-size="12.5" fill="${BLACK}">${body}${parts.join("")}</svg>`;
    };
    return { X, Y, left, top, inner, high, width, finish };
  }
  function path(f, x, y) {
    let d = "";
    for (let i = 0; i < x.length; i++) d += `${i ? "L" : "M"}${f.X(x[i]).toFixed(1)} ${f.Y(y[i]).toFixed(1)}`;
    return d;
  }
  function curve(f, x, y, colour, dash) {
    return `<path d="${path(f, x, y)}" fill="none" stroke="${colour}" stroke-width="${dash ? 1.3 : 2}"` +
      `${dash ? ' stroke-dasharray="5 4"' : ""}/>`;
  }
  function area(f, x, low, high) {
    const back = path(f, Array.from(x).reverse(), Array.from(low).reverse());
    return `<path d="${path(f, x, high)}L${back.slice(1)}Z" fill="${BLUE}" fill-opacity="0.25"/>`;
  }

  // -- colours
  function colour(anchors, share) {
    const at = Math.min(Math.max(share, 0), 1) * (anchors.length - 1), i = Math.min(Math.floor(at), anchors.length - 2);
    return anchors[i].map((c, k) => c + (at - i) * (anchors[i + 1][k] - c));
  }
  const anchorsOf = (kind) => MAPS[kind].split(" ").map((h) => [0, 2, 4].map((k) => parseInt(h.slice(k, k + 2), 16)));
  function painted(columns, rows, value, kind, [low, high]) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [columns, rows];
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows), anchors = anchorsOf(kind);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
      const v = value(column, rows - 1 - row), at = 4 * (row * columns + column);
      const rgb = Number.isFinite(v) ? colour(anchors, (v - low) / (high - low || 1)) : [255, 255, 255];
      for (let k = 0; k < 3; k++) image.data[at + k] = rgb[k];
      image.data[at + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
  }
  function heat(element, spec) { // x, y: coordinates; value(i, j); limits, kind, labels, name, points, mark
    const half = (v) => (v.length > 1 ? Math.abs(v[1] - v[0]) / 2 : 0.5);
    const box = (v) => { const [a, b] = extent(v); return [a - half(v), b + half(v)]; };
    const [xs, ys] = [box(spec.x), box(spec.y)];
    const ratio = spec.square ? (ys[1] - ys[0]) / (xs[1] - xs[0]) : 0.72;
    const [low, high] = spec.limits, most = 6;
    const scale = high > low ? ticks(low, high, most) : { marks: [[low, short(low)]], factor: "" };
    const right = 34 + Math.max(widest(scale.marks), 34); // room for the bar of colours
    const f = frame(element, xs, ys, spec.labels, Math.min(ratio, 1.2), right, spec.square);
    const picture = painted(spec.x.length, spec.y.length, spec.value, spec.kind, spec.limits);
    let body = `<image x="${f.left}" y="${f.top}" width="${f.inner}" height="${f.high}" preserveAspectRatio="none" ` +
      `href="${picture}"/>`;
    const bar = painted(1, 64, (_, j) => j / 63, spec.kind, [0, 1]), at = f.left + f.inner + 12;
    body += `<image x="${at}" y="${f.top}" width="12" height="${f.high}" preserveAspectRatio="none" href="${bar}"/>`;
    const said = [spec.unit && escaped(spec.unit), scale.factor].filter(Boolean).join(" ");
    if (said) body += `<text x="${at + 12 + widest(scale.marks)}" y="${f.top - 8}" text-anchor="end">${said}</text>`;
    for (const [v, said] of scale.marks) {
      const y = f.top + f.high - ((v - low) / (high - low || 1)) * f.high;
      body += `<text x="${at + 16}" y="${(y + 4).toFixed(1)}">${said}</text>`;
    }
    for (const wall of spec.walls || []) for (const [x, y] of wall.lines) {
      body += `<path d="${path(f, x, y)}" fill="none" stroke="${wall.colour}" stroke-width="1.8">` +
        `<title>${escaped(wall.label)}</title></path>`;
    }
    for (const [px, py] of spec.points || []) {
      body += `<circle cx="${f.X(px).toFixed(1)}" cy="${f.Y(py).toFixed(1)}" r="2.2" fill="#fff" stroke="#222" ` +
        'stroke-width="0.7"/>';
    }
    if (spec.mark !== undefined) {
      body += `<path d="M${f.X(spec.mark).toFixed(1)} ${f.top}v${f.high}" stroke="#fff" stroke-width="3.5"/>` +
        `<path d="M${f.X(spec.mark).toFixed(1)} ${f.top}v${f.high}" stroke="${ORANGE}" stroke-width="1.6"/>`;
    }
    f.finish(body, spec.name);
  }

  // -- the field
  const field = page.field, axes = field.axes, time = axes.find((a) => a.name === "t");
  const space = axes.filter((a) => a.name !== "t");
  const frames = time && space.length ? time.values.length : 1;
  const mean = field.mean.map(unpacked), std = field.std.map(unpacked);
  const truth = field.truth && field.truth.map(unpacked), errors = field.errors && field.errors.map(unpacked);
  const data = field.data.map((d) => ({ field: d.field, values: unpacked(d.values),
    points: Object.fromEntries(Object.entries(d.points).map(([k, v]) => [k, unpacked(v)])) }));
  const size = mean[0].length / frames; // positions per frame
  const part = (values, k) => values.subarray(k * size, (k + 1) * size);
  const known = (values) => values && values.some(Number.isFinite);
  function nearest(t) {
    let best = 0;
    time.values.forEach((v, k) => { if (Math.abs(v - t) < Math.abs(time.values[best] - t)) best = k; });
    return best;
  }
  for (const d of data) if (frames > 1) d.frame = Array.from(d.points.t, nearest); // a datum shows in one frame
  function shown(name, k) { // [point, value] of the data of a field in a frame
    const found = [];
    for (const d of data) if (d.field === name) for (let i = 0; i < d.values.length; i++) {
      if (frames === 1 || d.frame[i] === k) found.push([d.points, i, d.values[i]]);
    }
    return found;
  }
  const reach = field.names.map((_, n) => {
    const ends = [];
    for (let i = 0; i < mean[n].length; i++) {
      const s = Number.isFinite(std[n][i]) ? std[n][i] : 0;
      ends.push(mean[n][i] - BAND * s, mean[n][i] + BAND * s);
    }
    const [low, high] = extent(ends), room = 0.04 * (high - low);
    return [low - room, high + room];
  });
  const axisLabel = (axis) => labelled(axis.name, axis.unit);
  const top = (values) => [0, extent(values)[1] || 1];

  function lines(element, n, k) { // one field along one axis
    const axis = space[0] || time, x = axis.values, m = part(mean[n], k), s = part(std[n], k);
    const seen = shown(field.names[n], k);
    const [low, high] = extent([...reach[n], ...seen.map((p) => p[2])]);
    const f = frame(element, extent(x), [low, high], [axisLabel(axis), labelled(field.labels[n], field.units[n])], 0.5);
    let body = "";
    if (known(s)) body += area(f, x, m.map((v, i) => v - BAND * s[i]), m.map((v, i) => v + BAND * s[i]));
    const look = seen.length > MANY ? 'r="1.7" fill-opacity="0.45"' : 'r="2.6"'; // many must not bury the mean
    for (const [points, i, value] of seen) {
      const px = points[axis.name][i];
      body += `<circle cx="${f.X(px).toFixed(1)}" cy="${f.Y(value).toFixed(1)}" ${look} fill="${ORANGE}"/>`;
    }
    body += curve(f, x, m, BLUE);
    if (truth) body += curve(f, x, part(truth[n], k), BLACK, true);
    f.finish(body, `${field.names[n]} along ${axis.name} with its interval`);
  }
  function spreads(element, n) { // the std along the only axis
    const axis = axes[0], f = frame(element, extent(axis.values), top(std[n]), [axisLabel(axis), labelled("std", field.units[n])], 0.32);
    f.finish(curve(f, axis.values, std[n], BLUE), `std of ${field.names[n]}`);
  }
  function mapped(n, kind) { // values of a map and the limits of its colours, the same at all times
    if (kind === "mean") return [mean[n], extent(mean[n])];
    if (kind === "std") return [std[n], top(std[n])];
    const most = Math.max(...extent(errors[n]).map(Math.abs)) || 1;
    return [errors[n], [-most, most]];
  }
  function overview(element, n, kind, k) { // over time and space
    const [values, limits] = mapped(n, kind);
    heat(element, { x: time.values, y: space[0].values, value: (i, j) => values[i * size + j], limits, kind,
      unit: field.units[n], labels: [axisLabel(time), axisLabel(space[0])], name: `${kind} of ${field.names[n]} over t and ${space[0].name}`,
      mark: time.values[k] });
  }
  function plane(element, n, kind, k) { // over two axes of space
    const [all, limits] = mapped(n, kind), values = part(all, k), [a, b] = space;
    const points = kind === "mean" ? shown(field.names[n], k).map(([p, i]) => [p[a.name][i], p[b.name][i]]) : [];
    heat(element, { x: a.values, y: b.values, value: (i, j) => values[i * b.values.length + j], limits, kind, points,
      walls: field.walls, unit: field.units[n], labels: [axisLabel(a), axisLabel(b)], square: true, name: `${kind} of ${field.names[n]}` });
  }

  for (const wall of field.walls) { // what the colours of a region's outline mean
    const said = document.createElement("span");
    said.textContent = wall.label;
    said.style.borderLeft = `1.2rem solid ${wall.colour}`;
    said.style.paddingLeft = ".4rem";
    document.getElementById("walls").append(said);
  }

  function draw(k) {
    for (const element of document.querySelectorAll("[data-draw]")) {
      const n = +(element.dataset.field || 0), kind = element.dataset.draw;
      if (kind === "lines") lines(element, n, k);
      if (kind === "spread") spreads(element, n);
      const [shape, what] = kind.split("-");
      if (shape === "overview") overview(element, n, what, k);
      if (shape === "plane") plane(element, n, what, k);
      if (kind === "coefficient") coefficient(element, page.coefficients[n]);
      if (kind === "reliability") reliability(element);
      if (kind === "pit") pit(element);
    }
    // what is drawn, for readers that cannot see it (and for tests)
    const middle = part(mean[0], k)[Math.floor(size / 2)];
    document.body.dataset.frame = String(k);
    document.body.dataset.middle = middle.toPrecision(6);
  }

  // -- coefficients and calibration
  function coefficient(element, c) {
    const f = frame(element, extent(c.x), [0, 1.05 * extent(c.after)[1]], [labelled(c.name, c.unit), "density"], 0.55);
    const inside = c.x.map((_, i) => i).filter((i) => c.x[i] >= c.interval[0] && c.x[i] <= c.interval[1]);
    const x = inside.map((i) => c.x[i]), y = inside.map((i) => c.after[i]);
    f.finish(area(f, x, y.map(() => 0), y) + curve(f, c.x, c.after, BLUE) + curve(f, c.x, c.prior, GREY, true),
      `density of ${c.name}`);
  }
  function reliability(element) {
    const c = page.calibration, labels = ["level of the interval", "share of the truth inside"];
    const f = frame(element, [0, 1], [0, 1], labels, 0.8);
    let body = curve(f, [0, 1], [0, 1], BLACK, true) + curve(f, c.levels, c.shares, BLUE);
    c.levels.forEach((v, i) => {
      body += `<circle cx="${f.X(v).toFixed(1)}" cy="${f.Y(c.shares[i]).toFixed(1)}" r="2.8" fill="${BLUE}"/>`;
    });
    f.finish(body, "share of the truth inside intervals of each level");
  }
  function pit(element) {
    const bars = page.calibration.pit, n = bars.length, labels = ["predicted probability of less than the truth", "density"];
    const f = frame(element, [0, 1], [0, Math.max(1.5, 1.08 * extent(bars)[1] * n)], labels, 0.8);
    let body = "";
    bars.forEach((v, i) => {
      const y = f.Y(v * n);
      body += `<rect x="${f.X(i / n).toFixed(1)}" y="${y.toFixed(1)}" width="${(f.inner / n).toFixed(1)}" ` +
        `height="${(f.top + f.high - y).toFixed(1)}" fill="${BLUE}" fill-opacity="0.35"/>`;
    });
    f.finish(body + curve(f, [0, 1], [1, 1], BLACK, true), "histogram of the probability integral transform");
  }

  // -- the slider: by mouse, by arrow keys, by #t=0.5 in the address
  const slider = document.getElementById("time"), said = document.getElementById("time-said");
  let at = 0;
  function go(k) {
    at = k;
    if (slider) {
      slider.value = String(k);
      said.textContent = +time.values[k].toPrecision(12) + (time.unit ? ` ${time.unit}` : ""); // as it is stored
      slider.setAttribute("aria-valuetext", `t = ${said.textContent}`);
    }
    draw(k);
  }
  function asked() {
    const match = /t=(-?[\d.eE+-]+)/.exec(location.hash);
    return match && slider ? nearest(parseFloat(match[1])) : at;
  }
  if (slider) {
    slider.addEventListener("input", () => go(+slider.value));
    const play = document.getElementById("play");
    let timer = 0;
    play.addEventListener("click", () => {
      if (timer) { clearInterval(timer); timer = 0; play.textContent = "Play"; return; }
      play.textContent = "Stop";
      timer = setInterval(() => go((at + 1) % frames), Math.max(60, 5000 / frames));
    });
  }
  addEventListener("hashchange", () => go(asked()));
  let width = 0;
  addEventListener("resize", () => {
    if (document.body.clientWidth !== width) { width = document.body.clientWidth; draw(at); }
  });
  go(asked());
})();
