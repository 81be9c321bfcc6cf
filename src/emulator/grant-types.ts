import type { Settings } from './settings/settings.ts';

/** RFC 8628, 3.4. */
export const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';
/** RFC 8693, 2.1. */
export const EXCHANGE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** The values of `grant_type` at `/oauth2/token`. */
export const GRANT_TYPES = [
  ...(['authorization_code', 'refresh_token', 'client_credentials', 'device_code'] as const),
  ...([DEVICE_GRANT_TYPE, EXCHANGE_GRANT_TYPE] as const),
];

/** The values of `grant_type` that `/oauth2/token` takes. */
export function supportedGrantTypes({ flows, deviceGrantType }: Pick<Settings, 'flows' | 'deviceGrantType'>): string[] {
  const hasDevice = flows !== 'code';
  return [
    ...(flows === 'device' ? [] : ['authorization_code']),
    ...(hasDevice && deviceGrantType !== 'device_code' ? [DEVICE_GRANT_TYPE] : []),
    ...(hasDevice && deviceGrantType !== 'urn' ? ['device_code'] : []),
    'refresh_token',
    ...(flows === 'all' ? ['client_credentials', EXCHANGE_GRANT_TYPE] : []),
  ];
}
