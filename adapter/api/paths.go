package api

import "strconv"

func jobsPath(all, plans bool) string {
	return "/v1/jobs?all=" + strconv.FormatBool(all) + "&plan=" + strconv.FormatBool(plans)
}

func jobPath(id uint32) string { return "/v1/jobs/" + strconv.FormatUint(uint64(id), 10) }

func idText(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
