export { createOwnPlacements, type OwnPlacements } from './own-placements.ts';
export {
  type EdgeCandidate,
  type PlacementRequest,
  placeMany,
  placeOne,
} from './place.ts';
