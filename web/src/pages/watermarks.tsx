// The chart alone, larger.

import { WatermarkPanel } from "../ui/watermarkpanel";
import type { JobView } from "./job";

export function WatermarksPage(view: JobView) {
  return <WatermarkPanel view={view} height={420} />;
}
