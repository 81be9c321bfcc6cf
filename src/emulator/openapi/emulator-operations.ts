import * as v from 'valibot';
import { ClockBody, LoginBody, SettingsChange, SettingsView } from '../api/control.ts';
import { FaultAnswer, FaultBody } from '../faults/body.ts';
import type { LoginResult } from '../oauth/login.ts';
import type { ClockView } from '../virtual-clock.ts';
import { inspectionOperations } from './inspection-operations.ts';
import { instant, NotFound, type Operation, refused } from './operation.ts';

const Login: v.GenericSchema<LoginResult> = v.strictObject({
  location: v.pipe(v.string(), v.url(), v.description('Where a browser would go next')),
});

const Clock: v.GenericSchema<ClockView> = v.strictObject({
  now: instant(),
  offset: v.pipe(v.number(), v.description('Seconds ahead of the clock that the emulator was given')),
});

/** What is under `/_emulator/`. */
export const emulatorOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/_emulator/login',
    id: 'login',
    summary: 'A user logs in, or refuses, without a browser',
    json: LoginBody,
    answers: { 200: { description: 'The helper has the code', body: Login }, 400: refused },
  },
  ...inspectionOperations,
  {
    method: 'get',
    path: '/_emulator/settings',
    id: 'readSettings',
    summary: 'How the portal behaves where the specification is silent; lifetimes in seconds',
    answers: { 200: { description: 'All settings', body: SettingsView } },
  },
  {
    method: 'patch',
    path: '/_emulator/settings',
    id: 'changeSettings',
    summary: 'Changes some settings; requests under way keep what they began with',
    json: SettingsChange,
    answers: { 200: { description: 'All settings', body: SettingsView }, 400: refused },
  },
  {
    method: 'get',
    path: '/_emulator/openapi.json',
    id: 'openapi',
    summary: 'This description',
    answers: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
  },
  {
    method: 'get',
    path: '/_emulator/clock',
    id: 'getClock',
    summary: 'The emulator’s time',
    answers: { 200: { description: 'The time', body: Clock } },
  },
  {
    method: 'post',
    path: '/_emulator/clock',
    id: 'advanceClock',
    summary: 'Puts the emulator’s time ahead: codes, states and tokens expire at once',
    json: ClockBody,
    answers: { 200: { description: 'The time it is now', body: Clock }, 400: refused },
  },
  {
    method: 'get',
    path: '/_emulator/faults',
    id: 'listFaults',
    summary: 'The faults that were added, spent ones too, the oldest first',
    answers: {
      200: { description: 'With what became of each', body: v.strictObject({ faults: v.array(FaultAnswer) }) },
    },
  },
  {
    method: 'post',
    path: '/_emulator/faults',
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
    id: 'clearFaults',
    summary: 'Takes all faults away',
    answers: { 204: { description: 'There is none' } },
  },
  {
    method: 'delete',
    path: '/_emulator/faults/{id}',
    id: 'removeFault',
    summary: 'Takes a fault away',
    params: v.strictObject({ id: v.string() }),
    answers: {
      204: { description: 'It is gone' },
      404: { description: 'There is none with this id', body: NotFound },
    },
  },
  {
    method: 'get',
    path: '/_emulator/',
    id: 'console',
    summary: 'The console page',
    answers: { 200: { description: 'For people', body: 'text/html' } },
  },
  {
    method: 'get',
    path: '/_emulator/console.css',
    id: 'consoleStyle',
    summary: "The console page's style",
    answers: { 200: { description: 'For browsers', body: 'text/css' } },
  },
  {
    method: 'get',
    path: '/_emulator/console/{file}',
    id: 'consoleModule',
    summary: "One of the console page's modules",
    params: v.strictObject({ file: v.string() }),
    answers: {
      200: { description: 'For browsers', body: 'text/javascript' },
      404: { description: 'There is no such module', body: NotFound },
    },
  },
];
