import { expect, test } from 'vitest';
import {
  addressBytes,
  elementsIn,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  time,
} from '../../src/system/der.ts';

test.each([
  ['127.0.0.1', '7f000001'],
  ['::', '00000000000000000000000000000000'],
  ['::1', '00000000000000000000000000000001'],
  ['fd00::2:1', 'fd000000000000000000000000020001'],
  ['2001:DB8::', '20010db8000000000000000000000000'],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
  ['::ffff:1.2.3.4', '00000000000000000000ffff01020304'],
])('the address %s is %s', (address, bytes) => {
  expect(addressBytes(address).toString('hex')).toBe(bytes);
});

test.each(['eth0', '', '1.2.3', 'fe80::1%eth0'])('%j is no address', (address) => {
  expect(() => addressBytes(address)).toThrow(RangeError);
});

// X.690 section 8.19.5, and RFC 5280 section 4.1.2.5.
test('object identifiers and moments are written as the standards have them', () => {
  expect(objectIdentifier('2.999.3').toString('hex')).toBe('0603883703');
  expect(objectIdentifier('1.2.840.10045.4.3.2').toString('hex')).toBe('06082a8648ce3d040302');
  expect(time(new Date('2049-12-31T23:59:59Z')).toString('latin1')).toBe('\x17\r491231235959Z');
  expect(time(new Date('2050-01-01T00:00:00Z')).toString('latin1')).toBe('\x18\x0f20500101000000Z');
});

test.each([0, 1, 127, 128, 255, 256, 65_535, 65_536])('%i bytes are read as they were written', (length) => {
  const elements = [octetString(Buffer.alloc(length, 0xa5)), integer(Buffer.from([7]))];
  expect(elementsIn(sequence(...elements))).toEqual(elements);
});

test('what ends too early is no element', () => {
  expect(() => elementsIn(sequence(octetString(Buffer.alloc(300))).subarray(0, 200))).toThrow(RangeError);
});
