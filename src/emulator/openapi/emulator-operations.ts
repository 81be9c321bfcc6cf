import * as v from 'valibot';
import { LoginBody } from '../endpoints/emulator-api.ts';
import type { LoginResult } from '../login.ts';
import { SettingsChange, SettingsView } from '../settings/api.ts';
import { inspectionOperations } from './inspection-operations.ts';
import type { Operation } from './operation.ts';

import { refused } from './shared-schemas.ts';

const Login: v.GenericSchema<LoginResult> = v.strictObject({
  location: v.pipe(v.string(), v.url(), v.description('Where a browser would go next')),
});

/** What is under `/_emulator/`. */
export const emulatorOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/_emulator/login',
    origin: 'base',
    id: 'login',
    summary: 'A user logs in, or refuses, without a browser',
    json: LoginBody,
    answers: { 200: { description: 'The helper has the code', body: Login }, 400: refused },
  },
  ...inspectionOperations,
  {
    method: 'get',
    path: '/_emulator/settings',
    origin: 'base',
    id: 'readSettings',
    summary: 'How the portal behaves where the specification is silent; lifetimes in seconds',
    answers: { 200: { description: 'All switches', body: SettingsView } },
  },
  {
    method: 'patch',
    path: '/_emulator/settings',
    origin: 'base',
    id: 'changeSettings',
    summary: 'Changes some switches; requests under way keep what they began with',
    json: SettingsChange,
    answers: { 200: { description: 'All switches', body: SettingsView }, 400: refused },
  },
  {
    method: 'get',
    path: '/_emulator/openapi.json',
    origin: 'base',
    id: 'openapi',
    summary: 'This description',
    answers: { 200: { description: 'OpenAPI 3.1', body: v.looseObject({ openapi: v.literal('3.1.0') }) } },
  },
];
