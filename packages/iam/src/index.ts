export { type CreateKeyRequest, type Iam, type IamOptions, openIam } from './iam.ts';
export type { Identity, KeyStamp } from './identity.ts';
export type { Rotation } from './rotate.ts';
export { hashOfSecret, keyIdOf, newSecret, SECRET } from './secret.ts';
