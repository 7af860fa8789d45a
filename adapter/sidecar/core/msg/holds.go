package msg

// FlagsOfStuckHolds are added to a hold that a companion stays in, so that the hold ends soon after the companion.
var FlagsOfStuckHolds = StartFlags[len(HoldFlags):]
