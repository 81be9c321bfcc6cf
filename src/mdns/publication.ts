import type { Timers } from '../core/clock.ts';
import type { Link } from './link.ts';
import { instancePointer, ownRecords, type ServiceDescription, TYPE_POINTER } from './records.ts';

/** RFC 6762 section 8.3 wants two announcements, a second apart; wireless networks lose multicast, so it is four. */
const REPEATS = [1000, 2000, 4000];

/**
 * Announces the hub on a link, and answers who asks for it. Its names have to be free: see `probe`. Disposing of it
 * says goodbye, and resolves when that is on the wire; where the network is gone, nobody is left to hear it.
 * @param onError hears when a repetition could not be sent
 * @throws Error as the socket gives it, where even the first announcement could not be sent
 */
export async function publish(
  link: Link,
  service: ServiceDescription,
  { timers, onError }: { timers: Timers; onError: (error: unknown) => void },
): Promise<AsyncDisposable> {
  const removable = [instancePointer(service.instanceName), ...ownRecords(service)];
  const records = [...removable, TYPE_POINTER];
  link.serve(records);
  await link.respond(records);
  let cancel = repeat(REPEATS);

  function repeat([delay, ...later]: readonly number[]): () => void {
    if (delay === undefined) return () => {};
    return timers.after(delay, () => {
      cancel = repeat(later);
      link.respond(records).catch(onError);
    });
  }

  return {
    async [Symbol.asyncDispose]() {
      cancel();
      link.serve([]);
      await link.respond(removable.map((record) => ({ ...record, ttl: 0 }))).catch(() => {});
    },
  };
}
