import * as v from 'valibot';
import { FaultAnswer, FaultBody } from '../faults/wire.ts';
import type { Operation } from './operation.ts';
import { refused } from './shared-schemas.ts';

/** The faults that clients meet. */
export const faultOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/_emulator/faults',
    origin: 'base',
    id: 'listFaults',
    summary: 'The faults that were added, spent ones too, the oldest first',
    answers: {
      200: { description: 'With what became of each', body: v.strictObject({ faults: v.array(FaultAnswer) }) },
    },
  },
  {
    method: 'post',
    path: '/_emulator/faults',
    origin: 'base',
    id: 'addFault',
    summary: 'Adds a fault that clients meet from now on',
    description:
      'Of several faults for one request the one that was added first strikes. `commit`: what the request asks for is ' +
      'done first. tls_failure needs an emulator with TLS. origin_down of the base origin, which takes this API with ' +
      'it, needs `seconds`.',
    json: FaultBody,
    answers: { 201: { description: 'The fault, with its id', body: FaultAnswer }, 400: refused },
  },
  {
    method: 'delete',
    path: '/_emulator/faults',
    origin: 'base',
    id: 'clearFaults',
    summary: 'Takes all faults away',
    answers: { 204: { description: 'There is none' } },
  },
  {
    method: 'delete',
    path: '/_emulator/faults/{id}',
    origin: 'base',
    id: 'removeFault',
    summary: 'Takes a fault away',
    params: v.strictObject({ id: v.string() }),
    answers: {
      204: { description: 'It is gone' },
      404: { description: 'There is none with this id', body: v.strictObject({ error: v.literal('not_found') }) },
    },
  },
];
