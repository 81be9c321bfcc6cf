import { findCloud } from '../../clouds/catalogue.ts';
import type { Cloud } from '../../clouds/cloud.ts';
import { parseDuration } from '../../system/clock.ts';
import type { SettingOptions } from './settings.ts';

/** How a known cloud behaves at its OAuth endpoints, as far as public sources say. */
export interface Profile {
  readonly settings: SettingOptions;
  /** The ID that the cloud has published for all programs. */
  readonly clientId?: string;
  /** Whether its clients have no secret. */
  readonly isPublic: boolean;
}

/** Used refresh tokens stay valid. */
const REUSABLE = 1_000_000;

/** The names of the emulator for the requests to a cloud. */
const OPERATIONS = { code: 'code', refresh: 'refresh', device_authorization: 'device', device_token: 'poll' } as const;

/** The profile of a cloud of src/clouds, or undefined. What sources do not say is left at the emulator's default. */
export function findProfile(name: string): Profile | undefined {
  const cloud = findCloud(name);
  if (cloud === undefined) return undefined;
  const { publicClient = cloud.client_secret === 'none', ...own } = cloud.emulator ?? {};
  return {
    settings: { ...settingsOf(cloud), ...own },
    ...(cloud.settings.client_id !== undefined && { clientId: cloud.settings.client_id }),
    isPublic: publicClient === true,
  };
}

/** What the description of a cloud for the hub says about the cloud itself. */
function settingsOf({ settings, scope = '', redirect, rotation, protocol = {}, api = {} }: Cloud): SettingOptions {
  const { operations = {} } = protocol;
  const isOffline = scope.split(' ').includes('offline_access');
  return {
    registration: false,
    dpop: 'ignored',
    ...(settings.device_authorization_endpoint === undefined && { flows: 'code' }),
    ...(settings.authorization_endpoint === undefined && { flows: 'device' }),
    clientAuthentication: settings.client_auth,
    ...(operations.refresh?.client_id === false && { refreshAuthentication: 'nothing' }),
    ...(operations.refresh?.client_auth === 'none' && { refreshAuthentication: 'client_id' }),
    ...(operations.revoke?.client_auth === 'bearer' && { revocationAuthentication: 'bearer' }),
    deviceGrantType: operations.device_token?.grant_type,
    ...(operations.code?.placement === 'query' && { parametersInQuery: true }),
    requiredParameters: requirementsOf(requiredParameters({ settings, protocol })),
    requiredHeaders: requirementsOf(Object.entries(api.headers ?? {}).map((header) => ['api', ...header])),
    redirectRule: redirect === null || redirect === 'fixed' ? undefined : REDIRECT_RULES[redirect],
    ...(settings.scope_separator === ',' && { scopeSeparator: 'comma' }),
    accountMember: protocol.account_member,
    ...((isOffline || settings.authorization_params?.['access_type'] === 'offline') && {
      refreshTokenIssue: 'offline',
    }),
    tokenLifetime: secondsOf(settings.token_lifetime),
    refreshLifetime: secondsOf(settings.idle_lifetime),
    grantLifetime: secondsOf(settings.login_lifetime),
    refreshEndsAccessToken: settings.refresh_ends_access_token,
    refreshGraceTime: secondsOf(rotation.grace),
    ...(rotation.refresh_token === 'reusable' && { refreshGrace: REUSABLE }),
    ...(rotation.refresh_token === 'unchanged' && { refreshRotation: 'never', refreshTokenInRefresh: false }),
  };
}

/** The redirect URIs that a cloud is known to accept. */
const REDIRECT_RULES = { lan: 'any', localhost: 'https-or-localhost', https: 'https' } as const;

type Required = readonly [operation: string, name: string, value: string];

function requiredParameters({ settings, protocol = {} }: Pick<Cloud, 'settings' | 'protocol'>): Required[] {
  const ofTokens = Object.entries(settings.token_params ?? {});
  const ofAll = Object.entries(OPERATIONS).flatMap(([name, own]) => {
    const { params = {}, client_id } = protocol.operations?.[name as keyof typeof OPERATIONS] ?? {};
    const clientId = client_id === true ? { client_id: '{client_id}' } : {};
    return Object.entries({ ...params, ...clientId }).map(([key, value]): Required => [own, key, value]);
  });
  const tokenRequests = ofTokens.flatMap(([key, value]): Required[] => [
    ['code', key, value],
    ['refresh', key, value],
  ]);
  return [...tokenRequests, ...ofAll];
}

/** Without the values that a person chooses. */
function requirementsOf(required: readonly Required[]): string | undefined {
  const texts = required.map(([operation, name, value]) => {
    const isFixed = !/[{<]/.test(value.replaceAll('{client_id}', ''));
    const encoded = encodeURIComponent(value).replaceAll('%7Bclient_id%7D', '{client_id}');
    return `${operation}:${name}${isFixed ? `=${encoded}` : ''}`;
  });
  return texts.length === 0 ? undefined : texts.join(' ');
}

function secondsOf(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : (parseDuration(duration) ?? 0) / 1000;
}
