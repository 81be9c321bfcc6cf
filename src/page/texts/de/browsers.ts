import type { browsers as english } from '../en/browsers.ts';

export const browsers: typeof english = {
  link: 'Angemeldete Browser',
  heading: 'Angemeldete Browser',
  intro:
    'Melden Sie ab, was Sie nicht kennen. Wer den Einrichtungscode kennt, kann sich wieder anmelden: kennt ihn vielleicht jemand anderes, lassen Sie einen neuen machen. Dieser Befehl am Hub tut das und meldet alle ab:',
  unknown: 'Unbekannter Browser',
  thisOne: 'Dieser Browser',
  since: 'Angemeldet',
  lastSeen: 'Zuletzt gesehen',
  notSeen: 'vor dem letzten Start des Hubs',
  address: 'Adresse beim Anmelden',
  signOut: 'Abmelden',
  signOutOthers: 'Alle anderen abmelden',
};
