import * as v from 'valibot';
import { FaultBody, FaultResponseBody, toFaultOptions, toFaultResponseBody } from '../faults/fault-body.ts';
import { pathParameter } from '../http/request-context.ts';
import { badRequest } from '../http/routes.ts';
import { camelCase, exactObject, renameKeys, snakeCase, snakeCaseKeys } from '../json.ts';
import { WaitingDevice, waitingDevices } from '../oauth/device-logins.ts';
import { issueToken } from '../oauth/issuers.ts';
import { approveDevice, DeviceApprovalBody, LoginBody, LoginResult, login } from '../oauth/login.ts';
import { pickSettings, settingSchemas } from '../settings/validation.ts';
import { ClockView } from '../virtual-clock.ts';
import { type ApiOperation, badRequestResponse, JwkSet, jsonOperation, NotFoundBody } from './operation.ts';

const SettingsBody = exactObject(renameKeys(settingSchemas, snakeCase));

/** Operations that control the emulator: log in, change settings, advance the clock, add faults. */
export const controlOperations: readonly ApiOperation[] = [
  jsonOperation({
    method: 'post',
    path: '/_emulator/login',
    id: 'login',
    summary: 'Log a user in, or refuse, without a browser',
    json: LoginBody,
    responses: {
      200: { description: 'Done; after a login the helper has the code', body: LoginResult },
      400: badRequestResponse,
    },
    handle: ({ portal }, { authorize_url: authorizeUrl, ...request }) => login(portal, { authorizeUrl, ...request }),
  }),
  jsonOperation({
    method: 'post',
    path: '/_emulator/device',
    id: 'approveDevice',
    summary: 'Allow or refuse the access of a device, without a browser',
    json: DeviceApprovalBody,
    responses: {
      200: { description: 'Done; the device gets it with its next poll', body: v.strictObject({}) },
      400: badRequestResponse,
    },
    handle({ portal }, { user_code: userCode, user, deny }) {
      approveDevice(portal, { userCode, user, deny });
      return {};
    },
  }),
  {
    method: 'get',
    path: '/_emulator/device',
    id: 'listDevices',
    summary: 'List devices that wait for their user, who has neither logged in nor refused',
    responses: { 200: { description: 'Oldest first', body: v.strictObject({ devices: v.array(WaitingDevice) }) } },
    handle: ({ portal }) => ({ devices: waitingDevices(portal.deviceLogins) }),
  },
  {
    method: 'get',
    path: '/_emulator/settings',
    id: 'readSettings',
    summary: 'Get the settings: behaviour that docs/portal.md leaves open; lifetimes in seconds',
    responses: { 200: { description: 'All settings', body: SettingsBody } },
    handle: ({ portal }) => snakeCaseKeys(pickSettings(portal.settings)),
  },
  jsonOperation({
    method: 'patch',
    path: '/_emulator/settings',
    id: 'changeSettings',
    summary: 'Change some settings; requests in progress keep the settings that they began with',
    json: v.partial(SettingsBody),
    responses: { 200: { description: 'All settings', body: SettingsBody }, 400: badRequestResponse },
    handle({ portal }, body) {
      portal.change(renameKeys(body, camelCase));
      return snakeCaseKeys(pickSettings(portal.settings));
    },
  }),
  jsonOperation({
    method: 'post',
    path: '/_emulator/keys/rotate',
    id: 'rotateSigningKey',
    summary: 'Sign JWTs with a new key; the JWK Set still has the former one, until the next rotation',
    json: exactObject({}),
    responses: { 200: { description: 'The JWK Set, the new key first', body: JwkSet }, 400: badRequestResponse },
    handle({ portal }) {
      portal.signingKey.rotate();
      return portal.signingKey.jwks();
    },
  }),
  jsonOperation({
    method: 'post',
    path: '/_emulator/token',
    id: 'issueToken',
    summary: 'Sign an access token with these claims, without a login',
    description:
      'The members of the body replace the claims that every token has. An API verifies the token with the JWK Set; ' +
      'there is no grant behind it, so the portal itself does not accept it.',
    json: v.record(v.string(), v.unknown()),
    responses: {
      200: { description: 'The token', body: v.strictObject({ access_token: v.string() }) },
      400: badRequestResponse,
    },
    handle: ({ portal }, claims) => ({ access_token: issueToken(portal, claims) }),
  }),
  {
    method: 'get',
    path: '/_emulator/clock',
    id: 'getClock',
    summary: 'Get the emulator’s time',
    responses: { 200: { description: 'The time', body: ClockView } },
    handle: ({ portal }) => portal.clock.view(),
  },
  jsonOperation({
    method: 'post',
    path: '/_emulator/clock',
    id: 'advanceClock',
    summary: 'Advance the emulator’s clock, so that codes, states and tokens expire',
    json: exactObject({ advance: v.number('a number of seconds, 0 or more') }),
    responses: { 200: { description: 'The new time', body: ClockView }, 400: badRequestResponse },
    handle({ portal }, { advance }) {
      portal.clock.advance(advance);
      return portal.clock.view();
    },
  }),
  {
    method: 'get',
    path: '/_emulator/faults',
    id: 'listFaults',
    summary: 'List all faults, including used-up ones, oldest first',
    responses: {
      200: { description: 'Each fault with its counts', body: v.strictObject({ faults: v.array(FaultResponseBody) }) },
    },
    handle: ({ faults }) => ({ faults: faults.all().map(toFaultResponseBody) }),
  },
  jsonOperation({
    method: 'post',
    path: '/_emulator/faults',
    id: 'addFault',
    summary: 'Add a fault, in force immediately',
    description:
      'If several faults match a request, the one added first applies. With `commit` the request is processed first. ' +
      'tls_failure needs an emulator with TLS. origin_down of the base origin needs `seconds`, because this API is ' +
      'unreachable too.',
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
    summary: 'Remove all faults',
    responses: { 204: { description: 'No fault is left' } },
    async handle({ faults }, _request, reply) {
      await faults.clear();
      reply.code(204);
    },
  },
  {
    method: 'delete',
    path: '/_emulator/faults/{id}',
    id: 'removeFault',
    summary: 'Remove a fault',
    params: v.strictObject({ id: v.string() }),
    responses: {
      204: { description: 'Removed' },
      404: { description: 'No fault has this ID', body: NotFoundBody },
    },
    async handle({ faults }, request, reply) {
      const isRemoved = await faults.remove(pathParameter(request, 'id') ?? '');
      reply.code(204);
      return isRemoved ? undefined : null;
    },
  },
];

const BASE_ORIGIN_NEEDS_SECONDS =
  'seconds: must be a number above 0, because this API is unreachable while the base origin is down (found none)';
