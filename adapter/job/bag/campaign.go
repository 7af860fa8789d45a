package bag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
)

// A campaign is a bag that several leaders work off, one in each cluster's job. Its folder is on a file system that all clusters
// share, and holds everything: there is no server. The tasks are dealt out in shares. A share is a bag in a folder of its own,
// and its journals are those of a bag: the leader that creates the next one has leased the share, and what an earlier leader writes
// after that does not count.
//
// A leader shows that it lives by writing its sign now and then. Other leaders compare the signs that they read, and measure by
// their own clocks how long one stays the same: clocks may differ. If they are wrong about a leader, tasks run twice, but end once.

// The files in a campaign's folder, besides those of a bag.
const (
	campaignFile  = "campaign" // its head
	sharesFolder  = "shares"   //
	signsFolder   = "leaders"  // their signs of life
	collectedFile = "collect"  // what the command that collects wrote
)

const (
	mostShares   = 2000
	mostSigns    = 10_000
	mostSign     = 1024    // bytes
	mostHead     = 1 << 20 // bytes
	campaignForm = 1
	collectID    = -1 // of the task that collects
)

// pace says when a leader acts.
type pace struct {
	lease time.Duration // without a sign of life, after which the shares of a leader are leased to others
	sign  time.Duration // between two signs
	idle  time.Duration // between two looks for shares while slots are free
	yield time.Duration // for which a share that was given back is left to others
}

var usualPace = pace{lease: time.Minute, sign: 5 * time.Second, idle: time.Second, yield: 10 * time.Second}

// head is the content of a campaign's file.
type head struct {
	Campaign int      `json:"evocampaign"` // version of the format
	Size     int      `json:"size"`        // tasks of a share
	Collect  []string `json:"collect,omitempty"`
	List
}

// shares returns how many shares there are, with the one of the task that collects.
func (h head) shares() int {
	n := (h.Tasks + h.Size - 1) / h.Size
	if h.Collect != nil {
		n++
	}
	return n
}

// part returns the tasks of a share. If there is a task that collects, it is in the last one.
func (h head) part(number int) List {
	if from := number * h.Size; from < h.Tasks {
		return h.List.part(from, min(from+h.Size, h.Tasks))
	}
	return List{Tasks: 1, First: collectID, Step: 1}
}

// sign is a leader's sign of life.
type sign struct {
	Lease
	Job   uint32 `json:"job"`
	Beat  int    `json:"beat"`
	Slots int    `json:"slots"`
	Idle  bool   `json:"idle,omitempty"` // it has room for tasks, and none are left
	Out   int64  `json:"out,omitempty"`  // Unix time until which it takes no tasks
	Why   string `json:"why,omitempty"`
}

// seen is a sign as it was read.
type seen struct {
	sign
	text  []byte
	since time.Time
}

// Campaign is one leader's view of a campaign. It belongs to one goroutine.
type Campaign struct {
	head
	pace
	dir    string
	me     sign
	beaten time.Time
	looked time.Time
	signs  map[string]*seen // of other leaders, by name
	over   map[int]bool     // shares whose tasks have ended
	mine   map[int]bool
	gave   map[int]time.Time // when shares were given back, for others
	free   []int             // shares that were given back, or whose leader has gone
	fresh  []int             // shares that were never leased
}

// Create makes a campaign in a folder, for Join. A campaign that is there stays if it has the same tasks. The words of collect, if
// any, run once all tasks have ended.
func Create(dir string, l List, collect []string) error {
	h := head{Campaign: campaignForm, Size: (l.Tasks + mostShares - 1) / mostShares, Collect: collect, List: l}
	if _, err := readHead(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
		return check(dir, h, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // the user's umask decides
		return err
	}
	all, others, err := epochs(dir)
	switch {
	case err != nil:
		return err
	case len(all) > 0:
		return fmt.Errorf("%s has a bag of one job: use another folder (--bag=DIR)", dir)
	}
	if err := create(dir, l, others); err != nil {
		return err
	}
	for _, name := range []string{sharesFolder, signsFolder} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil { //nolint:gosec // the user's umask decides
			return err
		}
	}
	// Only one of several that create it at once succeeds, also on NFS.
	temp := filepath.Join(dir, campaignFile+"."+strconv.FormatUint(rand.Uint64(), 36))
	defer os.Remove(temp)
	err = wholefile.Write(temp, 0o666, func(w io.Writer) error { return json.NewEncoder(w).Encode(h) })
	if err == nil {
		err = os.Link(temp, filepath.Join(dir, campaignFile))
	}
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return check(dir, h, err)
}

// check returns err, or why a folder has another campaign than this.
func check(dir string, h head, err error) error {
	if err != nil {
		return err
	}
	is, err := readHead(dir)
	switch {
	case err != nil:
		return err
	case !is.same(h.List):
		return fmt.Errorf("%s has %d other tasks: give the same tasks to resume the campaign, or use another folder (--bag=DIR)", dir, is.Tasks)
	case h.Collect != nil && !slices.Equal(is.Collect, h.Collect):
		return fmt.Errorf("%s collects by %q: the command cannot change", dir, is.Collect)
	}
	return nil
}

// readHead reads the head of the campaign in a folder.
func readHead(dir string) (h head, err error) {
	text, err := readBounded(filepath.Join(dir, campaignFile), mostHead)
	if err != nil {
		return h, err
	}
	switch err = json.Unmarshal(text, &h); {
	case err != nil:
		return h, fmt.Errorf("%s: its file %s is damaged: %w", dir, campaignFile, err)
	case h.Campaign != campaignForm:
		return h, fmt.Errorf("%s: campaign of version %d: this program reads version %d", dir, h.Campaign, campaignForm)
	case !h.valid() || h.Size < 1 || h.shares() > mostShares+1:
		return h, fmt.Errorf("%s: its file %s makes no sense", dir, campaignFile)
	}
	return h, nil
}

var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Join returns the campaign in a folder, for the leader in a job of a cluster.
func Join(dir string, l List, cluster string, job uint32) (*Campaign, error) {
	h, err := readHead(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s has no campaign: evosbatch --clusters makes one, in a folder that all clusters share", dir)
	case err != nil:
		return nil, err
	case !h.same(l):
		return nil, fmt.Errorf("%s has %d other tasks", dir, h.Tasks)
	case !clusterName.MatchString(cluster):
		return nil, fmt.Errorf("invalid cluster name %q", cluster)
	}
	h.List = l // with its text
	c := &Campaign{head: h, pace: usualPace, dir: dir, signs: map[string]*seen{}, over: map[int]bool{}, mine: map[int]bool{}, gave: map[int]time.Time{}}
	c.me = sign{Job: job, Lease: Lease{Cluster: cluster, Leader: fmt.Sprintf("%s-%d-%s", cluster, job, strconv.FormatUint(rand.Uint64(), 36))}}
	if err := c.show(time.Now(), c.me); err != nil {
		return nil, err
	}
	return c, c.look(time.Now())
}

func shareDir(dir string, number int) string {
	return filepath.Join(dir, sharesFolder, fmt.Sprintf("%04d", number))
}

// show writes this leader's sign, always in the same file: a client of NFS then reads what was written last.
func (c *Campaign) show(now time.Time, s sign) error {
	s.Lease, s.Job, s.Beat = c.me.Lease, c.me.Job, c.me.Beat+1
	if len(s.Why) > mostSign/4 {
		s.Why = s.Why[:mostSign/4]
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, signsFolder, s.Leader), os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // the user's umask decides
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(bytes.TrimSpace(text), bytes.Repeat([]byte{' '}, max(mostSign-len(text), 0))...), 0)
	if err = errors.Join(err, f.Close()); err == nil {
		c.me, c.beaten = s, now
	}
	return err
}

// names returns at most so many names in a folder. One that is not there has none.
func names(dir string, most int) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0) // a pipe would have the reader wait
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// readSigns reads the signs of all leaders in a folder, by name.
func readSigns(dir string) (map[string]seen, error) {
	all := map[string]seen{}
	found, err := names(filepath.Join(dir, signsFolder), mostSigns)
	for _, name := range found {
		text, err := readBounded(filepath.Join(dir, signsFolder, name), 4*mostSign)
		if err != nil {
			continue // its leader has just ended
		}
		s := seen{text: text}
		_ = json.Unmarshal(text, &s.sign) // one that is being written counts as a sign of life
		all[name] = s
	}
	return all, err
}

// readOthers notes which leaders live.
func (c *Campaign) readOthers(now time.Time) error {
	found, err := readSigns(c.dir)
	if err != nil {
		return err
	}
	for name := range c.signs {
		if _, is := found[name]; !is {
			delete(c.signs, name)
		}
	}
	for name, s := range found {
		had := c.signs[name]
		switch {
		case name == c.me.Leader:
		case had == nil || !bytes.Equal(had.text, s.text):
			s.since = now
			c.signs[name] = &s
		case now.Sub(had.since) > 2*c.pace.lease: // one that still lives writes it again
			_ = os.Remove(filepath.Join(c.dir, signsFolder, name))
		}
	}
	return nil
}

// gone reports whether a leader shows no sign of life.
func (c *Campaign) gone(leader string, now time.Time) bool {
	s := c.signs[leader]
	if s == nil && c.readOthers(now) == nil { // it may just have begun
		s = c.signs[leader]
		return s == nil
	}
	return s != nil && now.Sub(s.since) > c.pace.lease
}

// look finds out which shares can be leased.
func (c *Campaign) look(now time.Time) error {
	if err := c.readOthers(now); err != nil {
		return err
	}
	there, err := c.begun()
	if err != nil {
		return err
	}
	c.free, c.fresh, c.looked = nil, nil, now
	n := c.shares()
	begin := rand.IntN(n) // leaders begin at different shares
	for i := range n {
		number := (begin + i) % n
		switch {
		case c.over[number] || c.mine[number] || now.Sub(c.gave[number]) < c.pace.yield:
		case !there[number]:
			c.fresh = append(c.fresh, number)
		default:
			left := int64(mostJournal)
			s, last, err := read(shareDir(c.dir, number), &left)
			switch {
			case errors.Is(err, errNoBag) || err == nil && !s.Over() && c.isFree(s, last, now):
				c.free = append(c.free, number)
			case err != nil:
				return err
			case s.Over():
				c.over[number] = true
			}
		}
	}
	return nil
}

// begun returns the shares that were leased before.
func (c *Campaign) begun() (map[int]bool, error) {
	found, err := names(filepath.Join(c.dir, sharesFolder), mostShares+2)
	there := map[int]bool{}
	for _, name := range found {
		if n, err := strconv.Atoi(name); err == nil {
			there[n] = true
		}
	}
	return there, err
}

// isFree reports whether a share can be leased.
func (c *Campaign) isFree(s *State, last part, now time.Time) bool {
	return s.left || last.Leader == "" || c.gone(last.Leader, now)
}

// idle reports whether another leader has nothing to do.
func (c *Campaign) idle(now time.Time) bool {
	for name, s := range c.signs {
		if s.Idle && !c.gone(name, now) {
			return true
		}
	}
	return false
}

// isOver reports whether all tasks have ended.
func (c *Campaign) isOver() bool { return len(c.over) == c.shares() }

// take leases a share, or returns nil if there is none to lease.
func (c *Campaign) take(now time.Time) (*share, error) {
	for len(c.free)+len(c.fresh) > 0 {
		from := &c.free
		if len(c.free) == 0 {
			from = &c.fresh
		}
		number := (*from)[0]
		if *from = (*from)[1:]; c.Collect != nil && number == c.shares()-1 && len(c.over) < number {
			continue // the others come first
		}
		s, err := c.lease(number, now)
		if s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// lease leases a share, or returns nil if another leader has it.
func (c *Campaign) lease(number int, now time.Time) (*share, error) {
	dir, l := shareDir(c.dir, number), c.part(number)
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // the user's umask decides
		return nil, err
	}
	all, _, err := epochs(dir)
	if err != nil {
		return nil, err
	}
	left := int64(mostJournal)
	s, last, err := read(dir, &left)
	switch {
	case errors.Is(err, errNoBag):
		s = NewState(l)
	case err != nil:
		return nil, err
	case !s.same(l):
		return nil, fmt.Errorf("%s is of other tasks", dir)
	case s.Over():
		c.over[number] = true
		return nil, nil
	case !c.isFree(s, last, now):
		return nil, nil
	}
	j, err := follow(dir, l, s, last, header{At: seconds(now), Job: int(c.me.Job), Lease: c.me.Lease}, all)
	switch {
	case errors.Is(err, ErrTaken):
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.mine[number] = true
	return &share{base: number * c.Size, number: number, journal: j, state: s}, nil
}

// leave notes that the leader no longer has a share.
func (c *Campaign) leave(s *share, now time.Time) {
	delete(c.mine, s.number)
	c.gave[s.number] = now
	if s.state.Over() && !s.taken {
		c.over[s.number] = true
	}
}

// end removes the leader's sign of life: what it had can be leased at once.
func (c *Campaign) end() { _ = os.Remove(filepath.Join(c.dir, signsFolder, c.me.Leader)) }
