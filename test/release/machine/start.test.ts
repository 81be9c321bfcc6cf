import { describe, expect, it } from 'vitest';
import { InstalledHub, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

/**
 * The longest start of the hub until it is ready, in starts of an empty program on the same machine; an idle one needs
 * 8.
 */
const MAX_STARTS = 40;
/** Other programs may slow a single start down: one of this many must be fast. */
const MAX_TRIES = 5;
/** Restores the service to its state before the first start. */
const STOP_AND_CLEAR = 'systemctl stop latchkey && rm -rf /var/lib/latchkey/* /var/cache/latchkey/*';

let hub: InstalledHub;

setUpMachine([], async (parts) => {
  hub = parts.use(await InstalledHub.bootInstalled(await buildPackage()));
});

describe('the start of the service', () => {
  it('the service is ready soon at its first start and at later ones', async () => {
    await hub.start();
    expect(await fewestStarts(() => hub.machine.sh(`${STOP_AND_CLEAR} && systemctl start latchkey`))).toBeLessThan(
      MAX_STARTS,
    );
    await hub.machine.sh('systemctl restart latchkey');
    expect(await fewestStarts(() => hub.machine.sh('systemctl restart latchkey'))).toBeLessThan(MAX_STARTS);
  });

  it('the service starts when the machine boots, with all its grants', async () => {
    const wallbox = await hub.addAppliance('wallbox');
    await hub.pair('wallbox');
    const { id } = (await hub.status()).hub;
    await hub.machine.sh('systemctl enable latchkey-emulator');
    await hub.machine.reboot();
    expect(await fewestStarts(() => hub.machine.reboot())).toBeLessThan(MAX_STARTS);
    expect(await hub.machine.property('latchkey', 'NRestarts')).toBe('0');
    expect((await hub.status()).hub.id).toBe(id);
    // The hub cannot know the age of its token yet, so it refreshes it when the appliance requests it.
    const after = await hub.token(wallbox);
    expect(await hub.whoami(String(after['access_token']))).toBe('200');
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });
});

/** {@link starts} of the fastest start. @param again starts the hub again */
async function fewestStarts(again: () => Promise<unknown>): Promise<number> {
  let fewest = await starts();
  for (let attempt = 1; fewest >= MAX_STARTS && attempt < MAX_TRIES; attempt++) {
    await again();
    fewest = Math.min(fewest, await starts());
  }
  return fewest;
}

/** The duration of the hub's start, in starts of an empty program. */
async function starts(): Promise<number> {
  const hubs = await startDuration();
  const empty = await hub.machine.sh(
    "bash -c 'TIMEFORMAT=%R; time for i in 1 2 3 4 5; do /usr/lib/latchkey/bin/node --eval 0; done' 2>&1",
  );
  return hubs / (Number(empty) / 5);
}

/** Seconds from the main process's start until the unit is active, as systemd measured them. */
async function startDuration(): Promise<number> {
  const names = ['ExecMainStartTimestampMonotonic', 'ActiveEnterTimestampMonotonic'];
  const [from = 0, to = 0] = await Promise.all(
    names.map(async (name) => Number(await hub.machine.property('latchkey', name))),
  );
  expect(from).toBeGreaterThan(0);
  expect(to).toBeGreaterThan(from);
  return (to - from) / 1e6;
}
