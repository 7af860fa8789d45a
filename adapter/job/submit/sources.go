package submit

import (
	"context"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// sources holds everything that says what is submitted, as read.
type sources struct {
	line    getopt.Line
	options layers
	script  script
	evo     request.Request // of the script's #EVO lines
	staging *staging        // to the cluster that the job is submitted to; nil: it is not known
}

// sources reads everything that says what is submitted; text is the script, if it was read already.
func (in reader) sources(ctx context.Context, table optionTable, line getopt.Line, text *script) (src sources, err error) {
	src.line = line
	src.options = layers{environment: table.fromEnvironment(in.environ), command: line.Options}
	if src.options.own, err = ownFrom(in.environ); err != nil {
		return src, err
	}
	for _, place := range [][]getopt.Option{src.options.command, src.options.own} {
		for i := range place {
			if o := &place[i]; o.Name == "profile" {
				if o.Value, err = in.profileOf(ctx, o.Value); err != nil {
					return src, err
				}
			}
		}
	}
	if text != nil {
		src.script = *text
	} else if src.script, err = in.script(line); err != nil {
		return src, err
	}
	if src.options.script, err = table.fromScript(src.script.text, src.script.name); err != nil {
		return src, err
	}
	if src.evo, err = request.FromScript(src.script.text); err != nil {
		return src, fmt.Errorf("%s, %w", src.script.name, err)
	}
	if _, given := src.options.last("clusters"); given {
		src.options.cluster = in.site.name(ctx)
	}
	return src, nil
}
