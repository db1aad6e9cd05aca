"""Images and regions in them: read, detected, mapped, sampled. Shared by every protocol."""
