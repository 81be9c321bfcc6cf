import type { ProfileName } from './profile-names.ts';
import type { SettingOptions } from './settings.ts';

/** How a known cloud behaves at its OAuth endpoints, as far as public sources say. */
export interface Profile {
  /** The cloud's name, for people. */
  readonly name: string;
  readonly settings: SettingOptions;
  /** The ID that the cloud has published for all programs. */
  readonly clientId?: string;
  /** Whether its clients have no secret. */
  readonly isPublic?: boolean;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Used refresh tokens stay valid. */
const REUSABLE = 1_000_000;

/** The profiles, by name. What sources do not say is left at the emulator's default; docs/emulator.md lists the rest. */
export const PROFILES: Readonly<Record<ProfileName, Profile>> = {
  'home-connect': {
    name: 'Home Connect',
    settings: {
      clientAuthentication: 'post',
      deviceAuthentication: 'client_id',
      refreshAuthentication: 'nothing',
      deviceGrantType: 'device_code',
      deviceCodeLifetime: 5 * MINUTE,
      redirectRule: 'any',
      tokenLifetime: DAY,
      refreshLifetime: 60 * DAY,
      refreshGrace: REUSABLE,
      refreshesPerMinute: 10,
      idToken: true,
    },
  },
  tado: {
    name: 'tado°',
    clientId: '1bb50063-6b0c-4d11-bd99-387f4a91cc46',
    isPublic: true,
    settings: {
      flows: 'device',
      clientAuthentication: 'none',
      parametersInQuery: true,
      deviceCodeLifetime: 5 * MINUTE,
      refreshTokenIssue: 'offline',
      tokenLifetime: 10 * MINUTE,
      refreshLifetime: 30 * DAY,
    },
  },
  netatmo: {
    name: 'Netatmo',
    settings: {
      flows: 'code',
      clientAuthentication: 'post',
      redirectRule: 'any',
      tokenLifetime: 3 * HOUR,
      refreshEndsAccessToken: true,
      invalidTokenStatus: '403',
    },
  },
  myuplink: {
    name: 'myUplink',
    settings: { flows: 'code', clientAuthentication: 'post', redirectRule: 'any', refreshTokenIssue: 'offline' },
  },
  viessmann: {
    name: 'Viessmann',
    isPublic: true,
    settings: {
      flows: 'code',
      clientAuthentication: 'none',
      pkce: 'required',
      redirectRule: 'any',
      refreshTokenIssue: 'offline',
      refreshLifetime: 180 * DAY,
    },
  },
  husqvarna: {
    name: 'Husqvarna',
    settings: {
      flows: 'code',
      clientAuthentication: 'post',
      redirectRule: 'any',
      requiredHeaders: 'api:X-Api-Key={client_id} api:Authorization-Provider=husqvarna',
      accountMember: 'user_id',
      revocationAuthentication: 'bearer',
      tokenLifetime: DAY,
    },
  },
  daikin: {
    name: 'Daikin Onecta',
    settings: {
      flows: 'code',
      redirectRule: 'https',
      requiredScopes: 'openid onecta:basic.integration',
      refreshTokenIssue: 'offline',
    },
  },
  miele: {
    name: 'Miele',
    settings: { flows: 'code', clientAuthentication: 'post', redirectRule: 'any', requiredScopes: 'openid' },
  },
  tibber: {
    name: 'Tibber',
    settings: {
      flows: 'code',
      clientAuthentication: 'post',
      redirectRule: 'https-or-localhost',
      refreshTokenIssue: 'offline',
      refreshLifetime: 30 * DAY,
    },
  },
  bmw: {
    name: 'BMW CarData',
    isPublic: true,
    settings: {
      flows: 'device',
      clientAuthentication: 'none',
      pkce: 'required',
      requiredParameters: 'device:response_type=device_code',
      pendingStatus: '403',
      accountMember: 'gcid',
      idToken: true,
      refreshLifetime: 14 * DAY,
    },
  },
  withings: {
    name: 'Withings',
    settings: {
      flows: 'code',
      clientAuthentication: 'post',
      redirectRule: 'any',
      scopeSeparator: 'comma',
      requiredParameters: 'code:action=requesttoken refresh:action=requesttoken',
      tokenEnvelope: 'body',
      accountMember: 'userid',
      tokenLifetime: 3 * HOUR,
      refreshLifetime: 365 * DAY,
      refreshGraceTime: 8 * HOUR,
      graceEndsOnUse: true,
    },
  },
  nest: {
    name: 'Google Nest',
    settings: {
      flows: 'code',
      clientAuthentication: 'post',
      redirectRule: 'https-or-localhost',
      requiredScopes: 'https://www.googleapis.com/auth/sdm.service',
      refreshTokenIssue: 'offline',
      refreshRotation: 'never',
      refreshTokenInRefresh: false,
      refreshLifetime: 180 * DAY,
    },
  },
  tesla: {
    name: 'Tesla',
    settings: {
      flows: 'code',
      clientAuthentication: 'post',
      redirectRule: 'any',
      refreshAuthentication: 'client_id',
      requiredParameters: 'code:audience',
      refreshTokenIssue: 'offline',
      tokenLifetime: 8 * HOUR,
      refreshLifetime: 90 * DAY,
    },
  },
  resideo: {
    name: 'Honeywell Home / Resideo',
    settings: {
      flows: 'code',
      clientAuthentication: 'basic',
      redirectRule: 'any',
      requiredParameters: 'authorize:appSelect=1',
      expiresInType: 'string',
      tokenLifetime: 30 * MINUTE,
    },
  },
  smartthings: {
    name: 'SmartThings',
    settings: {
      flows: 'code',
      clientAuthentication: 'basic',
      redirectRule: 'any',
      requiredParameters: 'code:client_id={client_id} refresh:client_id={client_id}',
      tokenLifetime: 86_399,
      refreshLifetime: 30 * DAY,
      refreshEndsAccessToken: true,
    },
  },
  hue: {
    name: 'Philips Hue',
    settings: {
      flows: 'code',
      clientAuthentication: 'basic',
      redirectRule: 'any',
      tokenLifetime: 7 * DAY,
      refreshLifetime: 100 * DAY,
    },
  },
  enphase: {
    name: 'Enphase',
    settings: {
      flows: 'code',
      clientAuthentication: 'basic',
      parametersInQuery: true,
      redirectRule: 'any',
      tokenLifetime: DAY,
      refreshLifetime: 30 * DAY,
    },
  },
  microsoft: {
    name: 'Microsoft Entra',
    isPublic: true,
    settings: {
      deviceAuthentication: 'client_id',
      requiredParameters: 'authorize:scope device:scope',
      deviceCodeLifetime: 15 * MINUTE,
      verificationUriComplete: false,
      redirectRule: 'https-or-localhost',
      refreshTokenIssue: 'offline',
      refreshLifetime: 90 * DAY,
      refreshGrace: REUSABLE,
    },
  },
  volvo: {
    name: 'Volvo Cars',
    settings: {
      flows: 'code',
      pkce: 'required',
      redirectRule: 'https',
      requiredHeaders: 'api:vcc-api-key',
      refreshLifetime: 7 * DAY,
      grantLifetime: 180 * DAY,
    },
  },
};

/** The profile with a name, or undefined. */
export function findProfile(name: string): Profile | undefined {
  return Object.entries<Profile>(PROFILES).find(([one]) => one === name)?.[1];
}
