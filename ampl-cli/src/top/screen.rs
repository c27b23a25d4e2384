//! The terminal: readings are drawn as they come, and keys are followed.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use ampl_analysis::live::State;
use ampl_reader::OpenError;
use ampl_report::live::draw;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::reading::{Reader, Reading};
use crate::failure::{Failure, OTHER};

/// Longest time until a key is followed.
const POLL_TIMEOUT: Duration = Duration::from_millis(100);
/// Pauses between readings are at least so many times as long as a reading.
const PAUSES: u32 = 9;

type Answer = Result<Reading, OpenError>;

/// Shows `run` until the user leaves, beginning with the reading `first`.
///
/// # Errors
/// A [`Failure`] of the terminal.
pub fn watch(run: &Path, first: Reading, interval: Duration) -> anyhow::Result<ExitCode> {
    let leave = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&leave))?;
    }
    let failed = |error: io::Error| {
        let fix = "use --once, which needs no terminal";
        Failure::message(OTHER, format!("cannot use the terminal: {error}"), "standard output", fix)
    };
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut screen = Screen { run, last: first, note: None, scroll: 0, most: 0 };
    let shown = screen.follow(&mut terminal, interval, &leave);
    ratatui::restore();
    shown.map_err(failed)?;
    if let Some(ended) = screen.last.view(run, None).ended() {
        notice!("ampl: {ended}");
    }
    Ok(ExitCode::SUCCESS)
}

struct Screen<'a> {
    run: &'a Path,
    last: Reading,
    note: Option<String>,
    scroll: usize,
    most: usize,
}

impl Screen<'_> {
    fn follow(
        &mut self,
        terminal: &mut DefaultTerminal,
        interval: Duration,
        leave: &AtomicBool,
    ) -> io::Result<()> {
        // A long reading must not hold up a key. The thread ends with this function, or with the process.
        let (send, readings) = mpsc::sync_channel::<Answer>(0);
        let (stop, stopped) = mpsc::channel::<()>();
        let run = self.run.to_owned();
        thread::spawn(move || {
            let mut reader = Reader::new(&run);
            let mut pause = interval;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let begun = Instant::now();
                let answer = reader.read();
                pause = interval.max(begun.elapsed() * PAUSES);
                if send.send(answer).is_err() {
                    break;
                }
            }
        });
        let _stop = stop;
        while !leave.load(Ordering::Relaxed) {
            self.draw(terminal)?;
            let leaves = event::poll(POLL_TIMEOUT)? && self.leaves(&event::read()?);
            if leaves {
                break;
            }
            match readings.try_recv() {
                Ok(answer) => self.take(answer),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    self.note = Some("reading has failed: leave with q".into())
                }
            }
        }
        Ok(())
    }

    fn draw(&mut self, terminal: &mut DefaultTerminal) -> io::Result<()> {
        let view = self.last.view(self.run, self.note.as_deref());
        let mut most = 0;
        terminal.draw(|frame| most = draw(frame, &view, self.scroll))?;
        (self.most, self.scroll) = (most, self.scroll.min(most));
        Ok(())
    }

    /// Takes a reading; what cannot be read any more keeps the last one, and says so.
    fn take(&mut self, answer: Answer) {
        match answer {
            Ok(reading) => (self.last, self.note) = (reading, None),
            // Journals go as soon as the trace is there: the next reading finds it.
            Err(error) if error.is_absent() && self.last.live.state == State::Runs => {
                self.note =
                    Some(format!("this is the last that could be read; the job may have ended: {error}"));
            }
            Err(error) => self.note = Some(format!("this is the last that could be read: {error}")),
        }
    }

    /// Follows a key; true where it leaves.
    fn leaves(&mut self, event: &Event) -> bool {
        let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
            return false;
        };
        let page = 10;
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(page),
            KeyCode::PageDown => self.scroll += page,
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = self.most,
            _ => {}
        }
        self.scroll = self.scroll.min(self.most);
        false
    }
}
