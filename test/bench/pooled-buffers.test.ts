import type { FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import type { Appliance } from '../../src/core/appliance.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import { clientAuthentication } from '../../src/lan/oauth/client-authentication.ts';
import { sha256 } from '../../src/system/compare.ts';
import { basic } from '../lan/wire.ts';

it('who an appliance is is found out without Node’s pool of buffers, which V8 would clear its whole heap for', () => {
  const secret = 'a-secret-of-an-appliance';
  const appliance = { credentials: { kind: 'secret', hash: sha256(secret) } } as Appliance;
  const service = { client: () => appliance } as Partial<LanService> as LanService;
  const authenticate = clientAuthentication(service, () => true);
  const authorization = basic({ client_id: 'wallbox', client_secret: secret });
  const request = { headers: { authorization } } as FastifyRequest;
  const before = small();
  for (let count = 0; count < 1000; count += 1) {
    expect(authenticate(request, new Map())).toMatchObject({ kind: 'authenticated' });
  }
  const after = small();
  // Compared here: to show how two pools differ takes a minute.
  expect({ isSamePool: after.buffer === before.buffer, taken: after.byteOffset - before.byteOffset }).toEqual({
    isSamePool: true,
    taken: 8,
  });
});

/** One from the pool, and not its last. */
function small(): Buffer {
  const buffer = Buffer.from('x');
  return buffer.byteOffset + 16 < Buffer.poolSize ? buffer : small();
}
