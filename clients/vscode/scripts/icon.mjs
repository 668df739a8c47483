// Draws images/icon.png: a canvas of tokens that clears from noise to lines of code.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { ROOT } from "./project.mjs";

const SIZE = 256;
const CELL = 24;
const EDGE = 32;
const GROUND = [20, 24, 31];
const LINES = [
  "##.####.",
  "..###.#.",
  "..#####.",
  "....##..",
  "..####..",
  "..##.###",
  "##.###..",
  ".....#..",
];
/** From settled to noise, left to right. */
const SETTLED = [98, 214, 160];
const NOISE = [92, 104, 138];

const pixels = Buffer.alloc(SIZE * (SIZE * 4 + 1));
for (let y = 0; y < SIZE; y += 1) {
  for (let x = 0; x < SIZE; x += 1) {
    const at = y * (SIZE * 4 + 1) + 1 + x * 4;
    pixels.set([...colorAt(x, y), isInside(x, y, 0, 0, SIZE, 44) ? 255 : 0], at);
  }
}

function colorAt(x, y) {
  const column = Math.floor((x - EDGE) / CELL);
  const row = Math.floor((y - EDGE) / CELL);
  const isOnGrid = column >= 0 && row >= 0 && column < 8 && row < 8;
  const left = EDGE + column * CELL + 2;
  const top = EDGE + row * CELL + 2;
  if (!isOnGrid || !isInside(x, y, left, top, CELL - 4, 5)) return GROUND;
  const isToken = LINES[row][column] === "#";
  const doubt = Math.min(1, Math.max(0, (column + row * 0.4 - 3) / 6));
  const strength = isToken ? 1 : 0.12 + 0.3 * doubt * hash(column, row);
  return GROUND.map((ground, i) => {
    const ink = SETTLED[i] + (NOISE[i] - SETTLED[i]) * doubt;
    return Math.round(ground + (ink - ground) * strength);
  });
}

function isInside(x, y, left, top, size, radius) {
  const dx = Math.max(left + radius - x, x - (left + size - 1 - radius), 0);
  const dy = Math.max(top + radius - y, y - (top + size - 1 - radius), 0);
  return (
    x >= left && y >= top && x < left + size && y < top + size && dx ** 2 + dy ** 2 <= radius ** 2
  );
}

function hash(column, row) {
  return ((column * 73 + row * 151) % 17) / 16;
}

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6, 0, 0, 0], 8); // 8 bits, red green blue alpha
const png = Buffer.concat([
  Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
  chunk("IHDR", header),
  chunk("IDAT", deflateSync(pixels, { level: 9 })),
  chunk("IEND", Buffer.alloc(0)),
]);
writeFileSync(join(ROOT, "images", "icon.png"), png);
