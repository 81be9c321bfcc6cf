import { afterAll, beforeAll, beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { whyNoMachine } from '../support/machine.ts';
import { InstalledHub } from './installed-hub.ts';
import { ownPackage } from './packages.ts';

/** Seconds from the start of its process to READY. */
const SOON = 2;

let reason: string | null;
let hub: InstalledHub;

beforeAll(async () => {
  reason = await whyNoMachine();
  if (reason === null) hub = await InstalledHub.bootInstalled(await ownPackage());
}, 600_000);

afterAll(() => hub?.[Symbol.asyncDispose]());

beforeEach((ctx: TestContext) => {
  if (reason !== null) ctx.skip(reason);
});

describe('the service', () => {
  it('is ready within 2 s, at its first start and at every other', async () => {
    await hub.start();
    expect(await took()).toBeLessThan(SOON);
    await hub.machine.sh('systemctl restart latchkey');
    expect(await took()).toBeLessThan(SOON);
  });

  it('comes up with the machine, with all its grants', async () => {
    const wallbox = await hub.addAppliance('wallbox');
    await hub.pair('wallbox');
    const { id } = (await hub.status()).hub;
    await hub.machine.sh('systemctl enable latchkey-emulator');
    await hub.machine.reboot();
    expect(await took()).toBeLessThan(SOON);
    expect(await hub.machine.property('latchkey', 'NRestarts')).toBe('0');
    expect((await hub.status()).hub.id).toBe(id);
    // How old its token is nobody has told it yet: it is refreshed for the appliance that asks.
    const after = await hub.token(wallbox);
    expect(await hub.whoami(String(after['access_token']))).toBe('200');
    expect((await hub.appliance('wallbox')).state).toBe('active');
  });
});

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
