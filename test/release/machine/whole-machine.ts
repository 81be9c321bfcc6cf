import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { ApplianceResponse, HubResponse } from '../../../src/control/messages.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { fetchGuestFiles, VirtualMachine } from '../../chaos/virtual-machine.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { debian } from '../../support/machine.ts';
import { buildPackage } from './packages.ts';

const run = promisify(execFile);
/** The host's address, as the machine sees it. */
export const HOST_ADDRESS = '10.0.2.2';

const SHELL = `[Unit]
Description=A shell for the test on the console
[Service]
ExecStart=/bin/sh -c 'stty -echo; echo @@ready; cat | sh 2>&1'
StandardInput=tty-force
StandardOutput=tty
TTYPath=/dev/ttyS0
Environment=HOME=/root
[Install]
WantedBy=multi-user.target
`;
/** systemd sets an earlier clock to the time of its own build. */
const NO_CLOCK = `[Unit]
Description=A clock that stands in 1970
Before=latchkey.service
[Service]
Type=oneshot
ExecStart=/bin/date -s @60
[Install]
WantedBy=multi-user.target
`;

/** An emulated machine with the package installed. Its portal is this emulator, and its clock starts in 1970. */
export async function bootEmulatedMachine({
  baseUrl,
  frontendUrl,
  clientId,
  clientSecret,
  ca,
}: Emulator): Promise<VirtualMachine> {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-whole-machine-'));
  const files = join(directory, 'files');
  const put = async (path: string, text: string) => {
    await mkdir(dirname(join(files, path)), { recursive: true });
    await writeFile(join(files, path), text);
  };
  const portal = [`base_url = "${baseUrl}"`, `frontend_url = "${frontendUrl}"`, `client_id = "${clientId}"`];
  const names = ['client_secret_file = "portal-home.secret"', 'ca_file = "portal-ca.pem"', ''];
  await put('etc/latchkey/latchkey.toml', ['[portals.home]', ...portal, ...names].join('\n'));
  await put('etc/latchkey/portal-ca.pem', ca ?? '');
  await put('etc/latchkey/credentials/portal-home.secret', clientSecret);
  await put('etc/systemd/system/console-shell.service', SHELL);
  await put('etc/systemd/system/no-clock.service', NO_CLOCK);
  await put('etc/hostname', 'hub\n');

  const { kernel, modules, busybox } = await fetchGuestFiles();
  const { path } = await buildPackage();
  const script = join(import.meta.dirname, 'whole-machine.sh');
  const args = [directory, await debian(), path, files, modules, busybox];
  await run('unshare', ['--mount', '--propagation', 'private', script, ...args], { timeout: scaleDeadline(60_000) });
  const disk = ['-drive', `file=${join(directory, 'disk')},format=raw,if=virtio,cache=unsafe`];
  const append = [
    '-append',
    'console=ttyS0 quiet panic=1 net.ifnames=0 systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service',
  ];
  const boots = ['-kernel', kernel, '-initrd', join(directory, 'initrd'), ...append, ...disk];
  const machine = await VirtualMachine.start(directory, 60_000, boots, 120);
  try {
    await runChecked(machine, 'ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0');
  } catch (error) {
    await machine[Symbol.asyncDispose]();
    throw error;
  }
  return machine;
}

/** The output of a command that must succeed. */
export async function runChecked(machine: VirtualMachine, command: string): Promise<string> {
  const { status, output } = await machine.run(command);
  if (status !== 0) throw new Error(`${command}: exit status ${status}: ${output}`);
  return output;
}

/** The status of the hub in it. */
export async function readHubStatus(
  machine: VirtualMachine,
): Promise<{ hub: HubResponse; appliances: ApplianceResponse[] }> {
  return JSON.parse(await runChecked(machine, 'latchkey status --json 2>/dev/null'));
}

/** Runs a line of JavaScript in the daemon, through Node's debugger. */
export async function evaluate(machine: VirtualMachine, pid: string, expression: string): Promise<void> {
  await runChecked(machine, `kill -USR1 ${pid}`);
  await eventually(async () => (await machine.run('curl -sf http://127.0.0.1:9229/json >/dev/null')).status === 0);
  const script = [
    "const [{ webSocketDebuggerUrl }] = await (await fetch('http://127.0.0.1:9229/json')).json()",
    'const socket = new WebSocket(webSocketDebuggerUrl)',
    `socket.onopen = () => { socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: '${expression}' } })); setTimeout(() => process.exit(), 500) }`,
  ].join('; ');
  await runChecked(machine, `/usr/lib/latchkey/bin/node --input-type=module -e "${script}"`);
}
