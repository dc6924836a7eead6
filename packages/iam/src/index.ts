export { type CreateKeyRequest, type Iam, type IamOptions, openIam } from './iam.ts';
export type { Identity, KeyStamp } from './identity.ts';
export { hashOfSecret, newSecret, SECRET } from './secret.ts';
