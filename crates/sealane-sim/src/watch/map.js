// What both maps draw: that of a run that is over, and that of one that goes on. Each has a canvas
// `map` with its `pen`.
const MARGIN = 32, SCALE = 24;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

// A length of 1, 2 or 5 times a power of ten that is about a fifth of the map.
function drawScale(zoom, height, ink) {
  const about = map.clientWidth / 5 / zoom, power = 10 ** Math.floor(Math.log10(about));
  const metres = [5, 2, 1].map(n => n * power).find(n => n <= about) ?? power;
  pen.fillStyle = ink;
  pen.fillRect(MARGIN / 2, height - 10, metres * zoom, 2);
  pen.fillText(metres >= 1000 ? `${metres / 1000} km` : `${metres} m`, MARGIN / 2, height - 15);
}

function drawMachine({ x, y, shade, sends, sleeps }, radius, colours) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.lineWidth = 2;
  pen.fillStyle = pen.strokeStyle = colours[shade];
  if (sleeps) pen.stroke();
  else pen.fill();
  if (!sends) return;
  pen.beginPath();
  pen.arc(x, y, radius + 3, 0, 2 * Math.PI);
  pen.strokeStyle = colours[3];
  pen.stroke();
}

// Names stand where they hide neither a machine nor another name; the others are left out.
function drawNames(marks, radius, width, ink) {
  const size = 2 * radius;
  const taken = marks.map(({ x, y }) => ({ x: x - radius, y: y - radius, w: size, h: size }));
  const meets = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
  pen.fillStyle = ink;
  for (const { x, y, name } of marks) {
    const w = pen.measureText(name).width, gap = radius + 5;
    const beside = [[x + gap, y - 6], [x - gap - w, y - 6]];
    const above = [[x - w / 2, y - gap - 11], [x - w / 2, y + gap]];
    const boxes = [...beside, ...above].map(([x, y]) => ({ x, y, w, h: 12 }));
    const fits = box => box.x >= 2 && box.x + w <= width - 2;
    const box = boxes.find(box => fits(box) && !taken.some(other => meets(box, other)));
    if (!box) continue;
    taken.push(box);
    pen.fillText(name, box.x, box.y + 10);
  }
}
