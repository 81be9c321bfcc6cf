import { describe, expect, it } from 'vitest';
import { InstalledHub, setUpMachine } from './installed-hub.ts';
import { buildPackage } from './packages.ts';

/** The most that the hub takes until it is ready, in starts of an empty program on the same machine; on an idle one it takes 8. */
const MAX_STARTS = 40;
/** Other programs may have held up one start or another: one of so many is quick. */
const MAX_TRIES = 5;
/** As the service was before its first start. */
const FORGET = 'systemctl stop latchkey && rm -rf /var/lib/latchkey/* /var/cache/latchkey/*';

let hub: InstalledHub;

setUpMachine([], async (parts) => {
  hub = parts.use(await InstalledHub.bootInstalled(await buildPackage()));
});

describe('the start of the service', () => {
  it('the service is ready soon at its first start and at later ones', async () => {
    await hub.start();
    expect(await fewestStarts(() => hub.machine.sh(`${FORGET} && systemctl start latchkey`))).toBeLessThan(MAX_STARTS);
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
    // How old its token is nobody has told it yet: it is refreshed for the appliance that asks.
    const after = await hub.token(wallbox);
    expect(await hub.whoami(String(after['access_token']))).toBe('200');
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });
});

/** The same as {@link starts}, of the quickest start. @param again starts the hub once more */
async function fewestStarts(again: () => Promise<unknown>): Promise<number> {
  let fewest = await starts();
  for (let tries = 1; fewest >= MAX_STARTS && tries < MAX_TRIES; tries++) {
    await again();
    fewest = Math.min(fewest, await starts());
  }
  return fewest;
}

/** How many starts of an empty program the hub's own start was as long as. */
async function starts(): Promise<number> {
  const hubs = await took();
  const empty = await hub.machine.sh(
    "bash -c 'TIMEFORMAT=%R; time for i in 1 2 3 4 5; do /usr/lib/latchkey/bin/node --eval 0; done' 2>&1",
  );
  return hubs / (Number(empty) / 5);
}

/** Seconds from the main process's start to the unit's being active, as systemd measured them. */
async function took(): Promise<number> {
  const names = ['ExecMainStartTimestampMonotonic', 'ActiveEnterTimestampMonotonic'];
  const [from = 0, to = 0] = await Promise.all(
    names.map(async (name) => Number(await hub.machine.property('latchkey', name))),
  );
  expect(from).toBeGreaterThan(0);
  expect(to).toBeGreaterThan(from);
  return (to - from) / 1e6;
}
