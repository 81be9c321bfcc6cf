import { expect, it } from 'vitest';
import { eventually } from '../../support/hub-process.ts';
import { CONFIGURATION_FILE, InstalledHub, SECRET_FILE, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';
import { type SurfaceSnapshot, Surfaces } from './surfaces.ts';

const OTHER_CLIENT = '6a5a5b0e-3c1f-4e0b-8d33-52a5d0c7a911';
/** The hub's state directory is on its own disk, with a file beside it that fills the disk. */
const DISK = '/srv/disk';

/** One machine: every test leaves a running and healthy hub, with a grant of wallbox. */
let hub: InstalledHub;
let surfaces: Surfaces;
/** The doctor's checks that are about the hub, and not about this machine. */
const HUB_CHECKS = /^(configuration|credentials|state|store|disk\.state|hub|portal)/;

setUpMachine([], async (parts) => {
  hub = parts.use(await InstalledHub.bootInstalled(await buildPackage(), { emulator: 'token_lifetime = "600s"' }));
  await hub.machine.sh(
    `mkdir -p ${DISK} /var/lib/private/latchkey && chmod 700 /var/lib/private
     mount -t tmpfs -o size=80m tmpfs ${DISK} && mkdir -m 700 ${DISK}/state
     mount --bind ${DISK}/state /var/lib/private/latchkey`,
  );
  await hub.startWith('wallbox');
  surfaces = await Surfaces.open(hub);
});

/** A fault of an installed hub. */
interface Fault {
  readonly what: string;
  readonly prepare?: () => Promise<unknown>;
  readonly begin: () => Promise<unknown>;
  /** The conditions of the hub that it leads to, and what the doctor finds besides. */
  readonly shown: { readonly codes: readonly string[]; readonly found: readonly string[] };
  readonly repair: () => Promise<unknown>;
}

const FAULTS: readonly Fault[] = [
  {
    what: 'a wrong client secret',
    begin: async () => {
      await hub.machine.sh(`cp -p ${SECRET_FILE} /root/right.secret; echo another-secret >${SECRET_FILE}`);
      await hub.machine.sh('systemctl restart latchkey; latchkey refresh wallbox || true', { seconds: 30 });
    },
    shown: { codes: ['misconfigured'], found: [] },
    repair: () =>
      hub.machine.sh(`cp -p /root/right.secret ${SECRET_FILE}; systemctl restart latchkey`, { seconds: 30 }),
  },
  {
    what: 'a full disk',
    begin: () =>
      eventually(async () => {
        await hub.machine.run(`dd if=/dev/zero of=${DISK}/filler bs=1M; dd if=/dev/zero of=${DISK}/rest bs=512`);
        await hub.machine.run('latchkey refresh wallbox');
        return (await hub.appliance('wallbox')).problem !== null;
      }, 20),
    shown: { codes: ['store_unwritable', 'store_unwritable'], found: ['disk.state'] },
    repair: () => hub.machine.sh(`rm ${DISK}/filler ${DISK}/rest`),
  },
  {
    what: 'an unreachable portal, until one appliance has reached it',
    prepare: async () => {
      await hub.addAppliance('heat-pump');
      await hub.pair('heat-pump');
    },
    begin: async () => {
      await hub.machine.sh('systemctl stop latchkey-emulator');
      // Two failures: the hub's own next retry is minutes away.
      await hub.machine.run('latchkey refresh wallbox; latchkey refresh heat-pump; latchkey refresh heat-pump');
    },
    shown: {
      codes: ['portal_unreachable', 'portal_unreachable'],
      found: ['portal.home.base_url', 'portal.home.frontend_url'],
    },
    // The hub notices nothing before its next retry, or before an appliance requests a token.
    repair: async () => {
      await hub.machine.sh('systemctl start latchkey-emulator; latchkey refresh wallbox', { seconds: 30 });
      await hub.ask((control) => control.removeAppliance('heat-pump'));
    },
  },
  {
    what: 'a wrong client_id',
    begin: async () => {
      const change = `s/^client_id = .*/client_id = "${OTHER_CLIENT}"/`;
      await hub.machine.sh(`cp ${CONFIGURATION_FILE} /root/right.toml; sed -i '${change}' ${CONFIGURATION_FILE}`);
      await hub.machine.sh('systemctl reload latchkey', { seconds: 30 });
      await hub.machine.run('latchkey pair wallbox --no-wait');
    },
    shown: { codes: ['portal_changed', 'pairing_failed'], found: [] },
    repair: () =>
      hub.machine.sh(`cp /root/right.toml ${CONFIGURATION_FILE}; systemctl reload latchkey`, { seconds: 30 }),
  },
  {
    what: 'a restored backup whose refresh token has been used since',
    prepare: async () => {
      await hub.machine.write('/root/passphrase', 'a passphrase for nobody\n', '600');
      await hub.machine.sh('latchkey backup /root/backup --passphrase-file /root/passphrase');
      // A grant that the hub still has is kept unchanged.
      await hub.machine.sh('latchkey refresh wallbox; latchkey unpair wallbox');
      await hub.machine.sh('latchkey restore /root/backup --yes --passphrase-file /root/passphrase', { seconds: 30 });
      // The hub restarts with the restored store, and has no control socket for a moment.
      await eventually(async () => (await hub.latchkey('setup-code')).status === 0, 15, 500);
      await surfaces.signIn();
    },
    begin: () => hub.machine.run('latchkey refresh wallbox'),
    shown: { codes: ['refused'], found: [] },
    repair: () => hub.pair('wallbox'),
  },
];

it.each(FAULTS)('all surfaces of an installed hub agree about $what, until after its repair', async (fault) => {
  await fault.prepare?.();
  const faulty = await surfaces.during(fault.begin, (last) => !isHealthy(last));
  expect.soft(summarize(faulty)).toEqual({ disagreements: [], ...fault.shown });
  const repaired = await surfaces.during(fault.repair, isHealthy);
  expect(summarize(repaired)).toEqual({ disagreements: [], codes: [], found: [] });
});

/** What the last snapshot shows, and in which snapshots surfaces disagreed. */
function summarize(snapshots: readonly SurfaceSnapshot[]) {
  const last = snapshots.at(-1);
  return {
    disagreements: snapshots.flatMap(({ at, disagreements }) =>
      disagreements.map((one) => `${Math.round(at)} ms: ${one}`),
    ),
    codes: last?.status?.conditions.map(({ code }) => code),
    found: last?.found.map(({ name }) => name).filter((name) => HUB_CHECKS.test(name)),
  };
}

function isHealthy(last: SurfaceSnapshot): boolean {
  return last.status?.conditions.length === 0;
}
