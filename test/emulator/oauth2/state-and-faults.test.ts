import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { ALICE, get } from '../portal-client.ts';
import { refusal, StockClient, startCloud } from './stock-client.ts';

test('device codes, codes with their challenge and the count of fast polls survive a restart', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'emulator-oauth2-'));
  const options = { state: join(folder.path, 'state') };
  const verifier = oauth.generateRandomCodeVerifier();
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
  const before = await startCloud(options);
  const stock = await StockClient.discover(before);
  const challenge = { code_challenge, code_challenge_method: 'S256' };
  const landed = await stock.logIn(stock.authorizationUrl(challenge));
  const [waiting, allowed] = [await stock.beginDevice(challenge), await stock.beginDevice()];
  await before.emulator.approveDevice({ userCode: allowed.user_code, user: ALICE.name });
  await expect(stock.poll(waiting.device_code)).rejects.toMatchObject(refusal('authorization_pending'));
  await expect(stock.poll(waiting.device_code)).rejects.toMatchObject(refusal('slow_down'));
  const keys = await (await get(stock.server.jwks_uri ?? '')).text();
  await before.emulator.close();

  await using after = await startCloud(options);
  const restarted = await StockClient.discover(after);
  landed.searchParams.set('iss', restarted.server.issuer);
  expect(await (await get(restarted.server.jwks_uri ?? '')).text()).toBe(keys);
  const wrong = oauth.generateRandomCodeVerifier();
  await expect(restarted.exchange(landed, wrong)).rejects.toMatchObject(refusal('invalid_grant'));
  expect((await restarted.exchange(landed, verifier)).token_type).toBe('bearer');
  expect((await restarted.poll(allowed.device_code)).token_type).toBe('bearer');
  expect(after.emulator.observations.fastPolls).toBe(1);
  await after.emulator.approveDevice({ userCode: waiting.user_code, user: ALICE.name });
  after.clock.pass(10);
  const code_verifier = verifier;
  expect((await restarted.poll(waiting.device_code, { code_verifier })).token_type).toBe('bearer');
  await after.emulator.reset();
  await expect(restarted.poll(allowed.device_code)).rejects.toMatchObject(refusal('invalid_grant'));
});

test('faults apply to the new endpoints by their names, and the log shows both', async () => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  const { emulator } = cloud;
  const issuer = emulator.frontendUrl;
  emulator.addFault({ kind: 'status', endpoint: 'discovery', status: 503 });
  expect((await get(`${issuer}/.well-known/openid-configuration`)).status).toBe(503);
  emulator.addFault({ kind: 'status', endpoint: 'device', status: 502 });
  expect((await get(`${issuer}/oauth2/device`)).status).toBe(502);
  emulator.addFault({ kind: 'commit_then_drop', endpoint: 'device_authorization' });
  await expect(stock.beginDevice()).rejects.toThrow('fetch failed');
  expect(emulator.devices()).toHaveLength(1);
  const { device_code, user_code } = await stock.beginDevice();
  await emulator.approveDevice({ userCode: user_code, user: ALICE.name });
  const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
  emulator.addFault({ kind: 'commit_then_drop', endpoint: 'token', grantType });
  await expect(stock.poll(device_code)).rejects.toThrow('fetch failed');
  cloud.clock.pass(5);
  await expect(stock.poll(device_code)).rejects.toMatchObject(refusal('invalid_grant'));
  const logged = emulator.requests.filter(({ fault }) => fault !== undefined);
  expect(logged.map(({ endpoint, url }) => [endpoint, url])).toEqual([
    ['discovery', '/.well-known/openid-configuration'],
    ['device', '/oauth2/device'],
    ['device_authorization', '/oauth2/device_authorization'],
    ['token', '/oauth2/token'],
  ]);
  const [answer] = emulator.requests.filter(({ endpoint }) => endpoint === 'device_authorization').slice(-1);
  expect(answer?.answer).toMatchObject({
    verification_uri: `${issuer}/oauth2/device`,
    verification_uri_complete: expect.stringMatching(/\?user_code=#/),
    device_code: expect.stringMatching(/^#/),
    interval: 5,
  });
});
