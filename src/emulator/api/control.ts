import * as v from 'valibot';
import { FaultBody, FaultResponseBody, toFaultOptions, toFaultResponseBody } from '../faults/fault-body.ts';
import { camelCase, renameKeys, snakeCase, snakeCaseKeys } from '../http/json-body.ts';
import { pathParameter } from '../http/request-form.ts';
import { badRequest } from '../http/routes.ts';
import { LoginRequest, LoginResult, login } from '../oauth/login.ts';
import { pickSettings, settingSchemas } from '../settings/validation.ts';
import { ClockView } from '../virtual-clock.ts';
import { type ApiOperation, badRequestResponse, jsonOperation, NotFoundBody } from './operation.ts';

const SettingsBody = v.strictObject(renameKeys(settingSchemas, snakeCase));

/** What tests and people do to the emulator: log in, change settings, put its clock ahead, add faults. */
export const controlOperations: readonly ApiOperation[] = [
  jsonOperation({
    method: 'post',
    path: '/_emulator/login',
    id: 'login',
    summary: 'A user logs in, or refuses, without a browser',
    json: LoginRequest,
    responses: { 200: { description: 'The helper has the code', body: LoginResult }, 400: badRequestResponse },
    handle: ({ portal }, body) => login(portal, body),
  }),
  {
    method: 'get',
    path: '/_emulator/settings',
    id: 'readSettings',
    summary: 'How the portal behaves where the specification is silent; lifetimes in seconds',
    responses: { 200: { description: 'All settings', body: SettingsBody } },
    handle: ({ portal }) => snakeCaseKeys(pickSettings(portal.settings)),
  },
  jsonOperation({
    method: 'patch',
    path: '/_emulator/settings',
    id: 'changeSettings',
    summary: 'Changes some settings; requests under way keep what they began with',
    json: v.partial(SettingsBody),
    responses: { 200: { description: 'All settings', body: SettingsBody }, 400: badRequestResponse },
    handle({ portal }, body) {
      portal.runtimeSettings.update(renameKeys(body, camelCase));
      return snakeCaseKeys(pickSettings(portal.settings));
    },
  }),
  {
    method: 'get',
    path: '/_emulator/clock',
    id: 'getClock',
    summary: 'The emulator’s time',
    responses: { 200: { description: 'The time', body: ClockView } },
    handle: ({ portal }) => portal.clock.view(),
  },
  jsonOperation({
    method: 'post',
    path: '/_emulator/clock',
    id: 'advanceClock',
    summary: 'Puts the emulator’s time ahead: codes, states and tokens expire at once',
    json: v.strictObject({ advance: v.number('is a number of seconds, 0 or more') }),
    responses: { 200: { description: 'The time it is now', body: ClockView }, 400: badRequestResponse },
    handle({ portal }, { advance }) {
      portal.clock.advance(advance);
      return portal.clock.view();
    },
  }),
  {
    method: 'get',
    path: '/_emulator/faults',
    id: 'listFaults',
    summary: 'The faults that were added, spent ones too, the oldest first',
    responses: {
      200: { description: 'With what became of each', body: v.strictObject({ faults: v.array(FaultResponseBody) }) },
    },
    handle: ({ faults }) => ({ faults: faults.all().map(toFaultResponseBody) }),
  },
  jsonOperation({
    method: 'post',
    path: '/_emulator/faults',
    id: 'addFault',
    summary: 'Adds a fault that clients meet from now on',
    description:
      'Of several faults for one request the one that was added first strikes. `commit`: what the request asks for is ' +
      'done first. tls_failure needs an emulator with TLS. origin_down of the base origin, which takes this API with ' +
      'it, needs `seconds`.',
    json: FaultBody,
    responses: { 201: { description: 'The fault, with its id', body: FaultResponseBody }, 400: badRequestResponse },
    handle({ faults }, body, request, reply) {
      const fault = toFaultOptions(body);
      if (fault.kind === 'origin_down' && fault.origin === 'base') {
        if (fault.seconds === null) return badRequest(reply, BASE_ORIGIN_NEEDS_SECONDS);
        reply.header('connection', 'close');
      }
      const added = faults.add(fault, request.raw.socket);
      reply.code(201);
      return toFaultResponseBody(added);
    },
  }),
  {
    method: 'delete',
    path: '/_emulator/faults',
    id: 'clearFaults',
    summary: 'Takes all faults away',
    responses: { 204: { description: 'There is none' } },
    async handle({ faults }, _request, reply) {
      await faults.clear();
      reply.code(204);
    },
  },
  {
    method: 'delete',
    path: '/_emulator/faults/{id}',
    id: 'removeFault',
    summary: 'Takes a fault away',
    params: v.strictObject({ id: v.string() }),
    responses: {
      204: { description: 'It is gone' },
      404: { description: 'There is none with this id', body: NotFoundBody },
    },
    async handle({ faults }, request, reply) {
      const isRemoved = await faults.remove(pathParameter(request, 'id') ?? '');
      reply.code(204);
      return isRemoved ? undefined : null;
    },
  },
];

const BASE_ORIGIN_NEEDS_SECONDS =
  'seconds: found none; allowed is a number above 0, because this API goes down with the base origin';
