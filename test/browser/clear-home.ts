import type { Emulator } from '../../src/emulator/index.ts';
import type { HubProcess } from '../support/hub-process.ts';

/** Removes all appliances of a hub, and has its portal as it was at the start: the next test begins as if with a new home. */
export async function clearHome({ hub, emulator }: { hub: HubProcess; emulator: Emulator }): Promise<void> {
  const { appliances } = await hub.status();
  for (const { name } of appliances) await hub.ask((control) => control.removeAppliance(name));
  await emulator.reset();
}
