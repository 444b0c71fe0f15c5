"use strict";
(() => {
  const messages = JSON.parse(document.getElementById("data").textContent);
  const part = (id) => document.getElementById(id);
  const [box, pick, said] = ["wave", "pick", "said"].map(part);
  const WIDTH = 1080, LEFT = 110, RIGHT = WIDTH - 12, TOP = 22, HIGH = 20, PITCH = 34, WORDS = 20;
  // The message, the times that are shown, and the time of the mark, in nanoseconds from its beginning.
  let message, from, to, mark = null, pointer = null;

  const time = (ns) => {
    const size = Math.abs(ns) < 1e3 ? [1, "ns"] : Math.abs(ns) < 1e6 ? [1e3, "us"] : Math.abs(ns) < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return `${+(ns / size[0]).toPrecision(6)} ${size[1]}`;
  };
  const escaped = (text) => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);
  const x = (ns) => LEFT + (ns - from) / (to - from) * (RIGHT - LEFT);
  const clamped = (ns) => Math.min(RIGHT, Math.max(LEFT, x(ns)));
  const height = () => TOP + message.lines.reduce((sum, line) => sum + PITCH + (line.words.length ? WORDS : 0), 0);

  // The first place of a sorted list that is not before a value.
  const search = (list, value) => {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  };

  const grid = (bottom) => {
    const raw = (to - from) / 8, decade = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((digit) => digit * decade).find((step) => step >= raw * 0.999);
    let drawn = "";
    for (let nth = Math.ceil(from / step); nth * step <= to; nth++) {
      const at = x(nth * step).toFixed(1);
      drawn += `<line class="grid" x1="${at}" y1="${TOP - 6}" x2="${at}" y2="${bottom}"/>` +
        `<text class="dim" x="${at}" y="${bottom + 12}" text-anchor="middle">${time(nth * step)}</text>`;
    }
    return drawn;
  };

  const wire = (line, nth, y) => {
    let place = search(line.edges, from);
    let high = line.high !== (place % 2 === 1);
    const level = () => high ? y : y + HIGH;
    let path = `M${LEFT} ${level()}`;
    for (; place < line.edges.length && line.edges[place] <= to; place++) {
      path += `H${x(line.edges[place]).toFixed(2)}`;
      high = !high;
      path += `V${level()}`;
    }
    path += `H${clamped(message.to).toFixed(2)}`;
    let drawn = `<text x="${LEFT - 8}" y="${y + HIGH - 4}" text-anchor="end">${escaped(line.name)}</text>` +
      `<path class="series l${nth % 6}" style="stroke-width:1.4" d="${path}"/>`;
    line.words.forEach((word, nth) => {
      const [begin, end] = message.words[nth];
      if (end < from || begin > to) return;
      const [left, right] = [clamped(begin), clamped(end)];
      const wide = right - left;
      drawn += `<rect class="frame word" rx="3" x="${left.toFixed(1)}" y="${y + HIGH + 4}" width="${wide.toFixed(1)}" height="14"/>`;
      if (wide > 8 * word.length) {
        drawn += `<text x="${((left + right) / 2).toFixed(1)}" y="${y + HIGH + 15}" text-anchor="middle">${word}</text>`;
      }
    });
    return drawn;
  };

  const draw = () => {
    let y = TOP, drawn = grid(height());
    message.lines.forEach((line, nth) => {
      drawn += wire(line, nth, y);
      y += PITCH + (line.words.length ? WORDS : 0);
    });
    for (const at of [mark, pointer]) {
      if (at !== null && at >= from && at <= to) {
        drawn += `<line class="cross" x1="${x(at)}" y1="${TOP - 6}" x2="${x(at)}" y2="${height()}"/>`;
      }
    }
    if (message.shortened && to === message.to) {
      drawn += `<text class="dim" x="${RIGHT}" y="12" text-anchor="end">the message goes on</text>`;
    }
    box.innerHTML = `<svg class="chart" id="message" role="img" aria-label="${escaped(message.name)}" width="${WIDTH}" ` +
      `height="${height() + 18}" viewBox="0 0 ${WIDTH} ${height() + 18}">${drawn}</svg>`;
    Object.assign(box.dataset, { nth: message.nth, from, to });
    said.textContent = pointer === null ? `begins at ${time(message.start_ns)}`
      : mark === null ? time(pointer) : `${time(pointer)}, ${time(pointer - mark)} from the mark`;
  };

  const show = (left, right) => {
    const whole = message.to - message.from;
    const wide = Math.min(whole, Math.max(whole / 1e5, right - left));
    from = Math.min(Math.max(message.from, left), message.to - wide);
    to = from + wide;
    draw();
  };
  const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);
  const move = (share) => show(from + share * (to - from), to + share * (to - from));
  const open = (place) => {
    pick.value = Math.min(messages.length - 1, Math.max(0, place));
    message = messages[pick.value];
    mark = pointer = null;
    show(message.from, message.to);
  };

  // Time at a pointer.
  const at = (event) => {
    const frame = box.firstElementChild.getBoundingClientRect();
    const pixel = (event.clientX - frame.left) * WIDTH / frame.width;
    return from + (pixel - LEFT) / (RIGHT - LEFT) * (to - from);
  };
  let drag = null, moved = false;
  box.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event));
  }, { passive: false });
  box.addEventListener("pointerdown", (event) => {
    [drag, moved] = [{ from, to, x: event.clientX }, false];
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    pointer = at(event);
    if (!drag) return draw();
    const wide = box.firstElementChild.getBoundingClientRect().width * (RIGHT - LEFT) / WIDTH;
    const by = (drag.x - event.clientX) / wide * (to - from);
    moved ||= Math.abs(drag.x - event.clientX) > 3;
    if (moved) show(drag.from + by, drag.to + by);
  });
  box.addEventListener("pointerup", (event) => {
    if (drag && !moved) mark = at(event);
    drag = null;
    draw();
  });
  box.addEventListener("pointerleave", () => {
    pointer = null;
    draw();
  });
  const whole = () => show(message.from, message.to);
  box.addEventListener("dblclick", whole);
  const keys = { "+": () => zoom(0.8), "-": () => zoom(1.25), 0: whole, ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2) };
  box.addEventListener("keydown", (event) => {
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  part("in").onclick = keys["+"];
  part("out").onclick = keys["-"];
  part("all").onclick = whole;
  part("before").onclick = () => open(+pick.value - 1);
  part("after").onclick = () => open(+pick.value + 1);
  pick.onchange = () => open(+pick.value);
  part("timeline").addEventListener("click", (event) => {
    const found = /^message (\d+)/.exec(event.target.textContent);
    if (!found) return;
    const far = messages.map((message) => Math.abs(message.nth - found[1]));
    open(far.indexOf(Math.min(...far)));
    box.scrollIntoView({ block: "center" });
  });

  messages.forEach((message, place) => {
    const why = message.why.includes("slowest") ? ", slow" : "";
    pick.add(new Option(`${message.nth}: ${message.name}, at ${time(message.start_ns)}${why}`, place));
  });
  if (messages.length) open(0);
})();
