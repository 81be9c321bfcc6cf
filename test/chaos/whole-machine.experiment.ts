import {
  bootEmulatedMachine,
  evaluate,
  HOST_ADDRESS,
  readHubStatus,
  runChecked,
} from '../release/machine/whole-machine.ts';
import { eventually } from '../support/hub-process.ts';
import { machineSkipReason } from '../support/machine.ts';
import { startPortal } from '../support/portal.ts';
import { type Experiment, SKIPPED } from './experiment.ts';
import { virtualMachineSkipReason } from './virtual-machine.ts';

const MIB = 2 ** 20;
const GROUP = '/sys/fs/cgroup/system.slice/latchkey.service';

/** Takes minutes, because the whole machine is emulated. There is no short form. */
export const experiment: Experiment = {
  name: 'A whole machine',
  promise:
    'The service of the package starts on a machine that boots in 1970, and recovers when the clock is set. If the daemon exceeds its memory limit, only the daemon is ended, and it restarts with its grants.',
  async run({ progress }) {
    const reason = (await virtualMachineSkipReason()) ?? (await machineSkipReason());
    if (reason !== null) return { figures: { [SKIPPED]: reason }, broken: [] };
    const broken: string[] = [];
    const expect = (holds: boolean, otherwise: string) => {
      if (!holds) broken.push(otherwise);
    };
    await using emulator = await startPortal({ tls: true, publicHost: HOST_ADDRESS });
    await using machine = await bootEmulatedMachine(emulator);
    const show = async (name: string) =>
      (await runChecked(machine, `systemctl show --value -p ${name} latchkey`)).trim();
    const number = async (command: string) => Number(await runChecked(machine, command));
    const appliance = async () => (await readHubStatus(machine)).appliances[0];

    await eventually(async () => (await show('ActiveState')) === 'active', 90);
    const now = (await runChecked(machine, 'date +%Y')).trim();
    progress(`the service is up, in ${now}`);
    expect(now === '1970', `the machine booted in ${now}`);
    expect((await show('NRestarts')) === '0', 'the service did not start at the first attempt');
    const [from = 0, to = 0] = [
      await number(`systemctl show --value -p ExecMainStartTimestampMonotonic latchkey`),
      await number(`systemctl show --value -p ActiveEnterTimestampMonotonic latchkey`),
    ];
    const pid = await show('MainPID');
    const rss = await number(`sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/${pid}/status`);
    const [most, current] = [await number(`cat ${GROUP}/memory.max`), await number(`cat ${GROUP}/memory.current`)];
    expect(most === Number(await show('MemoryMax')), `the memory limit is ${most} bytes`);

    await runChecked(machine, 'latchkey appliance add wallbox >/dev/null');
    await machine.run('latchkey pair wallbox --no-wait >/dev/null 2>&1');
    await runChecked(machine, `date -s @${Math.round(Date.now() / 1000)}`);
    await eventually(async () => (await appliance())?.authorize_url !== undefined, 90);
    const link = new URL((await appliance())?.authorize_url ?? '');
    await emulator.login({ state: link.searchParams.get('state') ?? '', user: 'demo' });
    await eventually(async () => (await appliance())?.state === 'active', 90);
    progress('the clock is set, and an appliance is paired');

    const blocks = Math.ceil(most / 2 ** 23);
    await evaluate(machine, pid, `globalThis.kept = Array.from({ length: ${blocks} }, () => Buffer.alloc(2 ** 23, 1))`);
    await eventually(async () => (await show('NRestarts')) === '1', 90);
    await eventually(async () => (await show('ActiveState')) === 'active', 90);
    const journal = await runChecked(machine, 'journalctl -u latchkey --output=cat');
    expect(journal.includes("result 'oom-kill'"), 'the daemon was not ended at its memory limit');
    await runChecked(machine, 'latchkey token wallbox >/dev/null');
    expect((await appliance())?.state === 'active', 'the grant did not survive');
    const mib = (bytes: number) => Math.round(bytes / MIB);
    return {
      figures: {
        'start until READY, emulated, s': Math.round((to - from) / 1e5) / 10,
        'memory.current, MiB': mib(current),
        'resident memory, MiB': mib(rss * 1024),
        'MemoryMax, MiB': mib(most),
      },
      broken,
    };
  },
};
