// The image for arm64 in a container on this machine: an emulator of the processor runs its programs. In the long form a
// hub in it issues tokens.
import { existsSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { version } from '../../../src/system/version.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { Containers, containersSkipReason } from './containers.ts';
import { addAndPair, askHub, hubVariables, requestToken, startEmulatorContainer } from './hub-container.ts';
import { BUILD_TIMEOUT, buildImages } from './images.ts';

const QEMU = '/usr/bin/qemu-aarch64-static';
const NODE = '/usr/lib/latchkey/bin/node';
const IMAGE = `localhost/latchkey:${version()}`;
const USER = 65_532;
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

if (IS_LONG_FORM) {
  it('a hub of the arm64 image pairs an appliance, is killed, and has its grant again', async () => {
    await containers.sh('load', '--input', join(built, `latchkey-emulator_${version()}_oci.tar`));
    const emulator = await startEmulatorContainer(containers, `localhost/latchkey-emulator:${version()}`);
    using folder = stateFolder();
    const secrets = join(folder.path, 'secrets');
    await mkdir(secrets);
    await writeFile(join(secrets, 'portal-home.secret'), emulator.client_secret, { mode: 0o400 });
    await chown(join(secrets, 'portal-home.secret'), USER, USER);
    await containers.start('hub', {
      image: IMAGE,
      options: [
        ...hubVariables(emulator),
        ...EMULATED,
        ...['--volume', `${secrets}:/run/secrets:ro`, '--volume', 'hub:/var/lib/latchkey'],
      ],
      command: ['/usr/bin/latchkey', 'serve'],
    });
    const state = containers.volume('hub');
    const appliance = await addAndPair(state, 'wallbox');
    const { status, token } = await requestToken(state, appliance);
    expect(status).toBe(200);
    const { id } = (await askHub(state, (control) => control.request('status'))).hub;

    await containers.sh('kill', '--signal', 'KILL', 'hub');
    await containers.sh('start', 'hub');
    expect(await requestToken(state, appliance)).toEqual({ status: 200, token });
    expect((await askHub(state, (control) => control.request('status'))).hub.id).toBe(id);
    expect(await containers.remove('hub')).toBe(0);
  });
}
