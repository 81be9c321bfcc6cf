// The image for arm64 in a container on this machine: an emulator of the processor runs its program.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { version } from '../../../src/system/version.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { Containers, containersSkipReason } from './containers.ts';
import { BUILD_TIMEOUT, buildImages } from './images.ts';

const QEMU = '/usr/bin/qemu-aarch64-static';
const NODE = '/usr/lib/latchkey/bin/node';
const IMAGE = `localhost/latchkey:${version()}`;
/**
 * Runs a program without a program format of the kernel, which would concern the whole machine. The first line of
 * /usr/bin/latchkey needs such a format, so Node.js is started directly.
 */
const EMULATED = ['--arch', 'arm64', '--volume', `${QEMU}:/qemu:ro`, '--entrypoint', JSON.stringify(['/qemu', NODE])];

let containers: Containers;
let built: string;

setUpOnce(
  async (parts) => {
    containers = parts.use(await Containers.create());
    built = await buildImages();
    await containers.sh('pull', '--arch', 'arm64', `oci-archive:${join(built, `latchkey_${version()}_oci.tar`)}`);
  },
  {
    skipReason: async () => (existsSync(QEMU) ? await containersSkipReason() : `${QEMU} is missing`),
    timeout: BUILD_TIMEOUT + scaleDeadline(60_000),
  },
);

it('the program of the arm64 image runs in a container', async () => {
  const program = "process.argv[2] = '--version'; console.log(process.arch); import('/usr/lib/latchkey/dist/main.js')";
  const result = await containers.run({ image: IMAGE, options: EMULATED, command: ['-e', program, 'latchkey'] });
  expect(result).toEqual({ status: 0, stdout: `arm64\n${version()}\n`, stderr: '' });
});
