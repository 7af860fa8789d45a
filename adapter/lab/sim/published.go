package sim

// Epsilon stands for the ϵ of the printed tables: more than 0, rounded to 0.
const Epsilon = .25

// Published holds the figures of the paper's Tables 1 and 2, by strategy and column. The
// scheduling times come from a Python program on an Intel Core 2 Duo at 2.53 GHz.
var Published = map[string]map[string]Range{
	"rigid": {
		"waste": {43, 70, 116}, "utilisation": {1, 1, 1}, "effective_utilisation": {30, 40, 51}, "makespan": {1, 1, 1}, "schedule_ms": {4.64, 6.2, 9.41},
		"avg_completion": {1, 1, 1}, "avg_wait": {1, 1, 1}, "expanded_apps": {0, 0, 0}, "app_expansion": {0, 0, 0}, "app_waste": {0, 67, 681},
	},
	"noX": {
		"waste": {0, 0, 0}, "utilisation": {.46, .58, .69}, "effective_utilisation": {49, 61, 73}, "makespan": {.49, .65, .82}, "schedule_ms": {11.4, 24.7, 55.8},
		"avg_completion": {.42, .61, .84}, "avg_wait": {.36, .55, .81}, "expanded_apps": {0, 0, 0}, "app_expansion": {0, 0, 0}, "app_waste": {0, 0, 0},
	},
	"2X": {
		"waste": {0, 2, 11}, "utilisation": {.47, .60, .71}, "effective_utilisation": {50, 63, 75}, "makespan": {.48, .64, .82}, "schedule_ms": {11.4, 24.4, 45.4},
		"avg_completion": {.45, .61, .84}, "avg_wait": {.36, .54, .80}, "expanded_apps": {0, 22, 56}, "app_expansion": {0, 4, 76}, "app_waste": {0, 2, 75},
	},
	"2X+c": {
		"waste": {0, Epsilon, 4}, "utilisation": {.46, .59, .70}, "effective_utilisation": {53, 63, 75}, "makespan": {.48, .63, .82}, "schedule_ms": {17.1, 36.7, 88.6},
		"avg_completion": {.44, .60, .84}, "avg_wait": {.37, .54, .81}, "expanded_apps": {0, 7, 40}, "app_expansion": {0, Epsilon, 60}, "app_waste": {0, Epsilon, 41},
	},
	"infX": {
		"waste": {0, 7, 22}, "utilisation": {.49, .63, .78}, "effective_utilisation": {52, 64, 73}, "makespan": {.49, .63, .78}, "schedule_ms": {11.4, 23.4, 49.2},
		"avg_completion": {.43, .62, .81}, "avg_wait": {.27, .53, .76}, "expanded_apps": {0, 26, 62}, "app_expansion": {0, 19, 884}, "app_waste": {0, 6, 360},
	},
	"infX+c": {
		"waste": {0, 1, 11}, "utilisation": {.46, .59, .71}, "effective_utilisation": {55, 64, 74}, "makespan": {.47, .62, .78}, "schedule_ms": {17.6, 36, 124},
		"avg_completion": {.44, .60, .81}, "avg_wait": {.35, .53, .76}, "expanded_apps": {0, 13, 47}, "app_expansion": {0, 5, 1354}, "app_waste": {0, 1, 119},
	},
}
