/** The document is a shape of the wire: `@dsec/protocol` has it. What it means is here. */
export {
  MECHANISMS,
  type Mechanism,
  POLICY_LIMITS,
  PolicyDocument,
  type PolicyOverlay,
  policySchema,
  type Requirement,
  SECTIONS,
  type Section,
  STAGES,
  type Stage,
  VERBS,
  type Verb,
} from '@dsec/protocol';
