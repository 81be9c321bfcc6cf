import * as v from 'valibot';
import { ClockBody } from '../endpoints/clock-api.ts';
import type { ClockView } from '../virtual-clock.ts';
import type { Operation } from './operation.ts';
import { instant, refused } from './shared-schemas.ts';

const Clock: v.GenericSchema<ClockView> = v.strictObject({
  now: instant(),
  offset: v.pipe(v.number(), v.description('Seconds ahead of the clock that the emulator was given')),
});

/** The emulator's time. */
export const clockOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/_emulator/clock',
    origin: 'base',
    id: 'getClock',
    summary: 'The emulator’s time',
    answers: { 200: { description: 'The time', body: Clock } },
  },
  {
    method: 'post',
    path: '/_emulator/clock',
    origin: 'base',
    id: 'advanceClock',
    summary: 'Puts the emulator’s time ahead: codes, states and tokens expire at once',
    json: ClockBody,
    answers: { 200: { description: 'The time it is now', body: Clock }, 400: refused },
  },
];
