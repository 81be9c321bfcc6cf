import { expect, it } from 'vitest';
import { eventually } from '../../support/hub-process.ts';
import { CONFIGURATION_FILE, InstalledHub, lineMatching, SECRET_FILE, setUpMachine } from './installed-hub.ts';
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

it('all surfaces agree about a wrong client secret, from its change until after its repair', async () => {
  const right = await hub.machine.sh(`cat ${SECRET_FILE}`);
  const changed = await surfaces.during('a file of credentials was changed', () =>
    hub.machine.write(SECRET_FILE, 'another-secret\n', '600'),
  );
  expect.soft(summarize(changed)).toEqual({ disagreements: [], codes: [], found: ['credentials'] });
  const wrong = await surfaces.during('the hub was restarted with a wrong secret', async () => {
    await hub.machine.sh('systemctl restart latchkey', { seconds: 30 });
    await hub.machine.run('latchkey refresh wallbox');
  });
  expect.soft(summarize(wrong)).toEqual({ disagreements: [], codes: ['misconfigured'], found: [] });
  const restart = 'sudo systemctl restart latchkey';
  const reloaded = await surfaces.during('the right secret, and a reload', async () => {
    await hub.machine.write(SECRET_FILE, `${right}\n`, '600');
    const refused = lineMatching(
      new RegExp(`credentials were changed after the hub was started .*${SECRET_FILE}.*${restart}`),
    );
    expect.soft(await hub.latchkey('reload')).toMatchObject({ status: 1, stderr: refused });
  });
  expect.soft(summarize(reloaded)).toEqual({ disagreements: [], codes: ['misconfigured'], found: ['credentials'] });
  const advice = expect.stringMatching(new RegExp(`${SECRET_FILE}[^]*${restart}`));
  expect.soft(reloaded.at(-1)?.outputs).toMatchObject({ text: advice, json: advice, page: advice, doctor: advice });
  const mended = await surfaces.during(
    'a restart',
    () => hub.machine.sh('systemctl restart latchkey', { seconds: 30 }),
    isHealthy,
  );
  expect.soft(summarize(mended).disagreements).toEqual([]);
  expectHealthy(mended);
});

it('all surfaces agree about a full disk, until there is space again', async () => {
  const full = await surfaces.during('a full disk', () =>
    eventually(async () => {
      await hub.machine.run(`dd if=/dev/zero of=${DISK}/filler bs=1M; dd if=/dev/zero of=${DISK}/rest bs=512`);
      await hub.machine.run('latchkey refresh wallbox');
      return (await hub.appliance('wallbox')).problem !== null;
    }, 20),
  );
  expect.soft(summarize(full)).toEqual({
    disagreements: [],
    codes: ['store_unwritable', 'store_unwritable'],
    found: ['disk.state'],
  });
  const mended = await surfaces.during(
    'room on the disk',
    () => hub.machine.sh(`rm ${DISK}/filler ${DISK}/rest`),
    isHealthy,
  );
  expect.soft(summarize(mended).disagreements).toEqual([]);
  expectHealthy(mended);
});

it('all surfaces agree about an unreachable portal, and recover when one appliance has reached it', async () => {
  await hub.addAppliance('heat-pump');
  await hub.pair('heat-pump');
  const unreachable = await surfaces.during('the portal is away', async () => {
    await hub.machine.sh('systemctl stop latchkey-emulator');
    // Two failures: the hub's own next retry is minutes away.
    await hub.machine.run('latchkey refresh wallbox; latchkey refresh heat-pump; latchkey refresh heat-pump');
  });
  expect.soft(summarize(unreachable)).toEqual({
    disagreements: [],
    codes: ['portal_unreachable', 'portal_unreachable'],
    found: ['portal.home.base_url', 'portal.home.frontend_url'],
  });
  // The hub notices nothing before its next retry, or before an appliance requests a token.
  const reachable = await surfaces.during(
    'the portal is back',
    () => hub.machine.sh('systemctl start latchkey-emulator; latchkey refresh wallbox', { seconds: 30 }),
    isHealthy,
  );
  expect.soft(summarize(reachable).disagreements).toEqual([]);
  expectHealthy(reachable);
  await hub.machine.sh('latchkey appliance remove heat-pump --yes');
});

it('all surfaces agree about a wrong client_id, until a reload of the corrected one', async () => {
  const wrong = await surfaces.during('a wrong client_id', async () => {
    await hub.machine.sh(
      `cp ${CONFIGURATION_FILE} /root/right.toml; sed -i 's/^client_id = .*/client_id = "${OTHER_CLIENT}"/' ${CONFIGURATION_FILE}`,
    );
    await hub.machine.sh('systemctl reload latchkey', { seconds: 30 });
    await hub.machine.run('latchkey pair wallbox --no-wait');
  });
  expect.soft(summarize(wrong)).toEqual({ disagreements: [], codes: ['portal_changed', 'pairing_failed'], found: [] });
  const mended = await surfaces.during(
    'the right client_id, and a reload',
    () => hub.machine.sh(`cp /root/right.toml ${CONFIGURATION_FILE}; systemctl reload latchkey`, { seconds: 30 }),
    isHealthy,
  );
  expect.soft(summarize(mended).disagreements).toEqual([]);
  expectHealthy(mended);
});

it('all surfaces agree about a restored backup whose refresh token has been used since', async () => {
  await hub.machine.write('/root/passphrase', 'a passphrase for nobody\n', '600');
  await hub.machine.sh('latchkey backup /root/backup --passphrase-file /root/passphrase');
  // A grant that the hub still has is kept unchanged.
  await hub.machine.sh('latchkey refresh wallbox; latchkey unpair wallbox');
  await hub.machine.sh('latchkey restore /root/backup --yes --passphrase-file /root/passphrase', { seconds: 30 });
  // The hub restarts with the restored store, and has no control socket for a moment.
  await eventually(async () => (await hub.latchkey('setup-code')).status === 0);
  await surfaces.signIn();
  const restored = await surfaces.during('a backup was restored', () => hub.machine.run('latchkey refresh wallbox'));
  expect.soft(summarize(restored)).toEqual({ disagreements: [], codes: ['refused'], found: [] });
  const paired = await surfaces.during('paired again', () => hub.pair('wallbox'), isHealthy);
  expect.soft(summarize(paired).disagreements).toEqual([]);
  expectHealthy(paired);
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

/** At the end no surface shows a problem. */
function expectHealthy(snapshots: readonly SurfaceSnapshot[]): void {
  expect.soft(summarize(snapshots)).toMatchObject({ codes: [], found: [] });
}

function isHealthy(last: SurfaceSnapshot): boolean {
  return last.status?.conditions.length === 0;
}
