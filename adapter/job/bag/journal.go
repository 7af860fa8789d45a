package bag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
)

// Bounds of a bag's folder, which its owner may have filled with anything.
const (
	mostEntries = 100_000 // names in the folder
	mostJournal = 1 << 30 // bytes of all journals
	mostRecord  = 4096    // bytes of a line
	mostTail    = 1 << 20 // bytes of a share's journal, that do not count
	mostSlots   = 10_000_000
)

// The files in a bag's folder.
const (
	journalPrefix = "journal-"
	tasksFile     = "tasks"       // a copy of the file of tasks
	outFolder     = "out"         // what tasks wrote
	savedFolder   = "checkpoints" //
)

// ErrTaken says that another leader works the bag off.
var ErrTaken = errors.New("another evosrun has taken over this bag")

// errNoBag says that a folder has no bag.
var errNoBag = errors.New("no bag of tasks")

// Journal is the file that one leader writes. Each leader has a file of its own, an epoch. Its header says which part of the
// file before it counts, so what an earlier leader writes later changes nothing, whatever the file system.
type Journal struct {
	dir   string
	epoch int
	file  *os.File
	size  int64 // what is written for certain
}

func journalName(epoch int) string { return fmt.Sprintf("%s%06d", journalPrefix, epoch) }

// part holds the beginning of one journal that counts.
type part struct {
	header
	size int64
}

// epochs returns the epochs in a folder, in order, and whether the folder has other files.
func epochs(dir string) (all []int, others bool, err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(mostEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if len(names) == mostEntries {
		return nil, true, fmt.Errorf("%s has %d files or more: it is no bag", dir, mostEntries)
	}
	for _, name := range names {
		digits, is := strings.CutPrefix(name, journalPrefix)
		n, err := strconv.Atoi(digits)
		if is && err == nil && n >= 1 && journalName(n) == name {
			all = append(all, n)
		} else {
			others = true
		}
	}
	slices.Sort(all)
	return all, others, nil
}

// openPlain opens a plain file for reading. A pipe of somebody else's would have the reader wait.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is no plain file", path))
	}
	return f, nil
}

// readHeader reads the first line of a journal. It reports false if that line is not whole.
func readHeader(dir string, epoch int) (h header, ok bool, err error) {
	f, err := openPlain(filepath.Join(dir, journalName(epoch)))
	if err != nil {
		return h, false, err
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(io.LimitReader(f, mostRecord), mostRecord).ReadSlice('\n')
	if err != nil {
		return h, false, nil // a leader that ended before it wrote it
	}
	ok = json.Unmarshal(line, &h) == nil && h.Epoch == epoch && h.After < epoch && h.After >= 0 && h.Bytes >= 0
	if ok && h.Bag != format {
		return h, false, fmt.Errorf("%s: journal of version %d: this program reads version %d", dir, h.Bag, format)
	}
	return h, ok && h.valid(), nil
}

// chain returns the parts of journals that count, in order.
func chain(dir string) ([]part, error) {
	all, _, err := epochs(dir)
	if err != nil {
		return nil, err
	}
	var parts []part
	want, size := 0, int64(-1)
	for _, epoch := range slices.Backward(all) {
		if want != 0 && epoch != want {
			continue
		}
		h, ok, err := readHeader(dir, epoch)
		switch {
		case err != nil:
			return nil, err
		case !ok && want != 0:
			return nil, fmt.Errorf("%s: %s is damaged", dir, journalName(epoch))
		case !ok:
			continue
		case len(parts) > 0 && !parts[0].same(h.List):
			return nil, fmt.Errorf("%s: %s is of other tasks", dir, journalName(epoch))
		}
		parts = append(parts, part{h, size})
		if want, size = h.After, h.Bytes; want == 0 {
			slices.Reverse(parts)
			return parts, nil
		}
	}
	if len(parts) > 0 {
		return nil, fmt.Errorf("%s: %s is missing", dir, journalName(want))
	}
	return nil, fmt.Errorf("%s: %w", dir, errNoBag)
}

// read reads the state of a bag. At most left bytes of journals are read, which it lowers.
func read(dir string, left *int64) (*State, part, error) {
	parts, err := chain(dir)
	if err != nil {
		return nil, part{}, err
	}
	s := NewState(parts[0].List)
	for i := range parts {
		p := &parts[i]
		s.takeOver(p.Lease)
		s.saw(p.At)
		most := *left
		if p.size >= 0 {
			most = min(*left, p.size)
		}
		whole, late, err := replay(filepath.Join(dir, journalName(p.Epoch)), most, s)
		if err != nil {
			return nil, part{}, err
		}
		s.late += late
		if *left -= whole; *left <= 0 {
			return nil, part{}, fmt.Errorf("%s: its journals have more than %d bytes", dir, mostJournal)
		}
		p.size = whole
	}
	return s, parts[len(parts)-1], nil
}

// replay applies the records in the first bytes of a file, and returns the size of the whole lines, and how many ends of a share's
// runs were written after them. A line that cannot be read is skipped: it was being written when its leader ended, or the file
// system lost it.
func replay(path string, most int64, s *State) (whole int64, late int, err error) {
	f, err := openPlain(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if whole, err = replayLines(io.LimitReader(f, most), s); err != nil || s.lease.Leader == "" || whole < most {
		return whole, 0, err
	}
	if _, err = f.Seek(whole, io.SeekStart); err != nil {
		return whole, 0, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, mostTail))
	for _, k := range []Kind{Done, Fail} {
		late += bytes.Count(rest, []byte(`{"k":"`+k+`",`))
	}
	return whole, late, err
}

func replayLines(from io.Reader, s *State) (whole int64, err error) {
	lines := bufio.NewReaderSize(from, 64<<10)
	for first := true; ; first = false {
		line, err := lines.ReadSlice('\n')
		long := len(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = lines.ReadSlice('\n')
			long += len(line)
		}
		if errors.Is(err, io.EOF) {
			return whole, nil // a torn line does not count
		} else if err != nil {
			return whole, err
		}
		whole += int64(long)
		var r Record
		if first || long > mostRecord || json.Unmarshal(line, &r) != nil {
			continue
		}
		s.Apply(r)
	}
}

// Open starts or resumes the bag of a folder, with the tasks given, for the given job.
func Open(dir string, l List, job uint32, now time.Time) (*Journal, *State, error) {
	if _, err := os.Lstat(filepath.Join(dir, campaignFile)); err == nil {
		return nil, nil, fmt.Errorf("%s is a campaign, which jobs of several clusters work off: use another folder (--bag=DIR)", dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // the user's umask decides
		return nil, nil, err
	}
	all, others, err := epochs(dir)
	if err != nil {
		return nil, nil, err
	}
	left := int64(mostJournal)
	s, last, err := read(dir, &left)
	switch {
	case errors.Is(err, errNoBag):
		if err := create(dir, l, others && len(all) == 0); err != nil {
			return nil, nil, err
		}
		s = NewState(l)
	case err != nil:
		return nil, nil, err
	case !s.same(l):
		return nil, nil, fmt.Errorf("%s has %d other tasks: give the same tasks to resume it, or use another folder (--bag=DIR)", dir, s.Tasks)
	}
	j, err := follow(dir, l, s, last, header{At: seconds(now), Job: int(job)}, all)
	return j, s, err
}

// follow starts the journal after the last part that was read, with the state for it.
func follow(dir string, l List, s *State, last part, h header, all []int) (*Journal, error) {
	s.List = l // with its text
	s.takeOver(h.Lease)
	h.Bag, h.Epoch, h.After, h.Bytes, h.List = format, 1, last.Epoch, last.size, l
	if len(all) > 0 {
		h.Epoch = all[len(all)-1] + 1
	}
	return begin(dir, h)
}

// create makes the folders of a new bag.
func create(dir string, l List, others bool) error {
	if _, err := os.Lstat(filepath.Join(dir, outFolder)); others && err != nil {
		return fmt.Errorf("%s has other files and no bag: use a folder of its own (--bag=DIR)", dir)
	}
	for _, name := range []string{outFolder, savedFolder} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil { //nolint:gosec // the user's umask decides
			return err
		}
	}
	if l.Sum == "" {
		return nil
	}
	return wholefile.Write(filepath.Join(dir, tasksFile), 0o666, func(w io.Writer) error {
		_, err := w.Write(l.text)
		return err
	})
}

// begin starts a journal. No other leader can start the same one, also on NFS.
func begin(dir string, h header) (*Journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, journalName(h.Epoch)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the user's umask decides
	if errors.Is(err, os.ErrExist) {
		return nil, ErrTaken
	} else if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, epoch: h.Epoch, file: f}
	line, err := json.Marshal(h)
	if err == nil {
		err = j.write(append(line, '\n'))
	}
	if err == nil {
		err = j.Sync()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// Check returns ErrTaken if another leader has taken over. It lists the folder: NFS clients may believe for a minute that a
// file is not there, but ask again about a folder that is opened.
func (j *Journal) Check() error {
	all, _, err := epochs(j.dir)
	if err == nil && len(all) > 0 && all[len(all)-1] > j.epoch {
		err = ErrTaken
	}
	return err
}

// Append writes records. After an error they have to be written again, in the same order.
func (j *Journal) Append(records []Record) error {
	var b bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	return j.write(b.Bytes())
}

// write writes behind what is written for certain: a part that an error left there is overwritten.
func (j *Journal) write(text []byte) error {
	if _, err := j.file.WriteAt(text, j.size); err != nil {
		return err
	}
	j.size += int64(len(text))
	return nil
}

// Sync makes what was written survive the machine.
func (j *Journal) Sync() error { return j.file.Sync() }

// Close ends the journal.
func (j *Journal) Close() error { return j.file.Close() }
