import { readFileSync } from 'node:fs';

/**
 * A text that changes whenever the interface lost its carrier or is another one of the same name: a cable that was out for
 * a second, or a radio that is in another network now, where the hub has the same address as in the one before. The
 * same text always, where the kernel doesn't say.
 * @param folder the kernel's interfaces, as /sys/class/net has them
 */
export function readMark(name: string, folder = '/sys/class/net'): string {
  return ['ifindex', 'carrier_changes'].map((file) => read(`${folder}/${name}/${file}`)).join('/');
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}
