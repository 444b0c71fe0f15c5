// node's spi-device as its users use it, on a W25Q32JV behind /dev/spidev0.0. Says nothing if all is well.
"use strict";

const assert = require("node:assert");
const spi = require(`${process.env.NODE_PACKAGES}/spi-device`);

const device = spi.openSync(0, 0, { mode: spi.MODE0, maxSpeedHz: 8_000_000 });
assert.equal(device.getOptionsSync().maxSpeedHz, 8_000_000);

const reads = (address, bytes) => {
  const sendBuffer = Buffer.alloc(4 + bytes);
  sendBuffer.writeUInt32BE((0x03 << 24) | address);
  return [{ sendBuffer, receiveBuffer: Buffer.alloc(4 + bytes), byteLength: 4 + bytes, speedHz: 10_000_000 }];
};
const id = [
  { sendBuffer: Buffer.from([0x9f]), byteLength: 1 },
  { receiveBuffer: Buffer.alloc(3), byteLength: 3 },
];
device.transferSync(id);
assert.deepEqual([...id[1].receiveBuffer], [0xef, 0x40, 0x16]);
assert.throws(() => device.transferSync([{ sendBuffer: Buffer.alloc(5000), byteLength: 5000 }]), /EMSGSIZE/);

// Sixteen pages, each byte with a value of its own.
const image = Buffer.from({ length: 4096 }, (_, at) => (at * 7 + (at >> 8)) & 0xff);
const send = (bytes) => device.transferSync([{ sendBuffer: Buffer.from(bytes), byteLength: bytes.length }]);
const busy = () => {
  const status = [{ sendBuffer: Buffer.from([0x05, 0]), receiveBuffer: Buffer.alloc(2), byteLength: 2 }];
  device.transferSync(status);
  return status[0].receiveBuffer[1] & 1;
};
for (let page = 0; page < 16; page++) {
  send([0x06]);
  send([0x02, 0, page, 0, ...image.subarray(page * 256, page * 256 + 256)]);
  while (busy());
}

// Its asynchronous transfers run in threads of their own: more at once than a process may ask without a connection.
let left = 200;
for (let count = left, index = 0; index < count; index++) {
  const address = (index * 7919) % 4000;
  device.transfer(reads(address, 64), (error, [transfer]) => {
    assert.ifError(error);
    assert.ok(transfer.receiveBuffer.subarray(4).equals(image.subarray(address, address + 64)));
    left -= 1;
    if (left === 0) {
      device.closeSync();
      console.log(`${count} reads`);
    }
  });
}
