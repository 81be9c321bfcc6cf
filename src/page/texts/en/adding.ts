/** Adding an appliance, and the credentials that are shown then. */
export const adding = {
  title: 'Add an appliance',
  name: 'Name',
  nameHint: 'Small letters a–z, digits and “-”, such as “wallbox” or “heat-pump-2”; at most 63.',
  scope: 'Access (scope)',
  scopeHint:
    'What it is to ask the portal for, as its manual says, such as “Monitoring RemoteControl”. May stay empty.',
  portal: 'Portal',
  add: 'Add',
  nameMissing: 'Type a name.',
  nameWrong:
    'This cannot be a name. Use small letters a–z, digits and “-”, beginning with a letter or digit; at most 63.',
  nameTaken: 'There is an appliance of this name already. Choose another name.',
  scopeWrong:
    'This has a character that cannot be in it, or is too long. Use names with spaces between them, without quotes or accents.',
  portalWrong: 'There is no such portal in the hub’s configuration.',
  credentials: {
    title: (appliance: string) => `Credentials of ${appliance}`,
    added: (appliance: string) => `${appliance} is added.`,
    rotated: (appliance: string) => `${appliance} has a new secret. The old one no longer works.`,
    keep: 'Put these into the appliance now. The secret is shown this once: the hub keeps no copy. This page can be loaded again for ten minutes, unless you tap “Done”.',
    clientId: 'Client ID',
    clientSecret: 'Client secret',
    tokenEndpoint: 'Token endpoint',
    pin: 'Fingerprint of the hub’s certificate authority',
    qr: 'All of it as a QR code',
    qrHint: 'For appliances with a camera, or an app that sets them up. It holds the secret: show it to nobody else.',
    connectNext: (appliance: string) => `Connect ${appliance} now`,
    done: 'Done',
    gone: 'These credentials are no longer shown',
    goneText:
      'They can be seen for ten minutes, and not after “Done” or signing out. If they are lost, give the appliance a new secret on its page.',
  },
};
