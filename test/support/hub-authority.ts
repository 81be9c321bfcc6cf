import { HubAuthority } from '../../src/certificates/authority.ts';
import type { SettingStore } from '../../src/core/store.ts';
import type { Authority } from '../../src/system/x509/certificates.ts';

/** The settings of a store, only in memory. */
export function memorySettings(settings: Map<string, string>): SettingStore {
  return {
    get: async (name) => settings.get(name) ?? null,
    getAll: async (names) => new Map([...settings].filter(([name]) => names.includes(name))),
    async save(values) {
      for (const [name, value] of Object.entries(values)) settings.set(name, value);
    },
    async replace(expected, values) {
      if (Object.entries(expected).some(([name, value]) => (settings.get(name) ?? null) !== value)) return false;
      await this.save(values);
      return true;
    },
  };
}

/** A hub authority with this CA, as if it had created the CA. */
export function hubAuthority(authority: Authority, settings = new Map<string, string>()): Promise<HubAuthority> {
  settings.set('ca_key', authority.key).set('ca_certificate', authority.certificate);
  return HubAuthority.load({ settings: memorySettings(settings) }, () => ({ names: [], networks: [] }));
}
