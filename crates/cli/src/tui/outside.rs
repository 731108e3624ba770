//! Other programs on the terminal: the external editor, the shell behind
//! Ctrl+Z. The terminal is given back as it was and taken over again.

use std::process::{Command, Stdio};

use crew_runtime::{Answer, Query};
use crew_tui::cells::Row;
use crew_tui::markdown::Line;
use crew_tui::request::Reply;
use crew_tui::theme::{MUTED, TEXT};
use crew_tui::view;
use rustix::process::{Signal, kill_current_process_group};

use super::face::Face;
use super::start::now;

impl Face {
    /// The draft in an editor of the person's choice.
    pub(super) async fn edit_outside(&mut self, text: String) {
        let command = self.editor_command();
        let path = std::env::temp_dir().join(format!("crew-draft-{}.md", now().0));
        if let Err(error) = crew_store::files::replace(&path, text.as_bytes()) {
            return self.failed(&format!("the draft cannot be written: {error}"));
        }
        self.give_terminal(&[]).await;
        let (words, file) = (command.clone(), path.clone());
        let ran = tokio::task::spawn_blocking(move || {
            // As a shell reads it: the setting may hold options.
            Command::new("sh")
                .arg("-c")
                .arg(format!("{words} \"$1\""))
                .arg("crew")
                .arg(&file)
                .stdin(Stdio::inherit())
                .status()
        });
        let status = ran.await;
        self.take_terminal();
        let edited = std::fs::read_to_string(&path);
        let _ = std::fs::remove_file(&path);
        match (status, edited) {
            (Ok(Ok(status)), Ok(edited)) if status.success() => {
                view::reply(&mut self.view, now(), Reply::Edited(edited));
            }
            _ => self.failed(&format!("the editor `{command}` failed; the draft stays")),
        }
    }

    fn editor_command(&self) -> String {
        let ready = self.ready.as_ref();
        let setting =
            ready.and_then(|ready| ready.config.settings.terminal.external_editor.clone());
        let of = |name: &str| ready.and_then(|ready| ready.config.place.environment.get(name));
        setting
            .or_else(|| of("VISUAL"))
            .or_else(|| of("EDITOR"))
            .unwrap_or_else(|| "nano".to_owned())
    }

    /// Suspends the program; the whole crew pauses (section 4).
    pub(super) async fn suspend(&mut self) {
        let open = self.view.open_work().len();
        let text = match open {
            0 => "crew is suspended; fg goes on".to_owned(),
            open => format!(
                "crew is suspended with {}, which pause too; fg goes on",
                crew_tui::format::count(open, "open subagent")
            ),
        };
        self.give_terminal(&[Line::prose(Row::of(&text, MUTED))]).await;
        // Stops this process until it is continued.
        let _ = kill_current_process_group(Signal::TSTP);
        self.take_terminal();
    }

    pub(super) async fn give_terminal(&mut self, last: &[Line]) {
        self.input.hold();
        self.restore_with(last);
        self.output.drain().await;
        self.terminal.leave();
    }

    pub(super) fn take_terminal(&mut self) {
        if self.terminal.enter().is_err() {
            return;
        }
        if !self.terminal.is_plain {
            self.output.write(super::clipboard::TITLE_KEPT.to_vec());
            let start = self.screen.start();
            self.output.write(start);
        }
        self.input.release();
        self.want(std::time::Duration::ZERO);
    }

    /// What was stopped, and how to come back (TERM-27).
    pub(super) async fn last_lines(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        let columns = self.terminal.size().columns;
        for (id, brief, worked) in self.view.open_work() {
            let mut row = Row::of("stopped ", MUTED);
            row.push(&id, TEXT);
            row.push(&format!(" - {brief} · worked {}", crew_tui::format::time(worked)), MUTED);
            lines.push(Line::prose(row.cut(columns)));
        }
        let (Some(ready), Some(session)) = (&self.ready, self.view.session().cloned()) else {
            return lines;
        };
        if let Ok(Answer::State(state)) = ready.handle.ask(&session, Query::State).await
            && state.is_saved
        {
            let command = format!("crew --session {}", session.as_str());
            lines.push(Line::whole(Row::of(&format!("resume with: {command}"), MUTED)));
        }
        lines
    }
}
