//! Asynchronous name lookup: the system's name service may take half a minute.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tickpath_web::WebError;

use crate::loss::Loss;

/// A function that resolves a host name; [`tickpath_web::resolve`] asks the system.
pub type Resolver = fn(host: &str, port: u16) -> Result<SocketAddrV4, WebError>;

/// Interval at which the thread checks whether it is still in use.
const LOOK: Duration = Duration::from_secs(60);

type Question = (String, u16);
type Answer = Result<SocketAddrV4, WebError>;

/// Progress of a lookup.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The address.
    Found(SocketAddrV4),
    /// The lookup is in progress.
    Waiting,
    /// The lookup failed.
    Failed(WebError),
}

/// Looks up one name at a time.
#[derive(Debug)]
pub(crate) struct NameService {
    resolver: Resolver,
    thread: Option<Thread>,
    /// The name that is being looked up.
    asked: Option<Question>,
    /// The last result with its name; reused when the service fails.
    known: Option<(Question, SocketAddrV4)>,
}

#[derive(Debug)]
struct Thread {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
    handle: thread::JoinHandle<()>,
}

impl NameService {
    pub(crate) fn new(resolver: Resolver) -> NameService {
        NameService { resolver, thread: None, asked: None, known: None }
    }

    /// Starts a lookup unless the host is numeric. While an earlier lookup runs, its answer comes first.
    pub(crate) fn ask(&mut self, host: &str, port: u16) -> Lookup {
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Lookup::Found(SocketAddrV4::new(address, port));
        }
        if self.asked.is_none() {
            let question = (host.to_owned(), port);
            match self.send(question.clone()) {
                Ok(()) => self.asked = Some(question),
                Err(source) => return Lookup::Failed(WebError::Resolve { host: host.to_owned(), source }),
            }
        }
        Lookup::Waiting
    }

    /// Polls for the answer.
    pub(crate) fn poll(&mut self, host: &str, port: u16) -> Lookup {
        let Some(thread) = &self.thread else { return self.ask(host, port) };
        let answer = match thread.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return Lookup::Waiting,
            Err(TryRecvError::Disconnected) => {
                self.thread = None;
                Err(ended(host))
            }
        };
        let asked = self.asked.take();
        if !asked.as_ref().is_some_and(|(of, at)| of == host && *at == port) {
            // The answer belongs to an abandoned lookup.
            return self.ask(host, port);
        }
        match answer {
            Ok(address) => {
                self.known = asked.map(|question| (question, address));
                Lookup::Found(address)
            }
            Err(error) => self.known(host, port).map_or(Lookup::Failed(error), Lookup::Found),
        }
    }

    /// Converts a lookup to an address, or `None` while it is in progress. Once it `is_late`, an earlier
    /// result is also accepted, because hosts rarely move.
    pub(crate) fn settle(
        &self,
        lookup: Lookup,
        host: &str,
        port: u16,
        is_late: bool,
    ) -> Result<Option<SocketAddrV4>, Loss> {
        match lookup {
            Lookup::Found(address) => Ok(Some(address)),
            Lookup::Failed(error) => Err(error.into()),
            Lookup::Waiting if !is_late => Ok(None),
            Lookup::Waiting => match self.known(host, port) {
                Some(address) => Ok(Some(address)),
                None => Err(Loss::NameService { host: host.to_owned() }),
            },
        }
    }

    /// The earlier result for this name.
    fn known(&self, host: &str, port: u16) -> Option<SocketAddrV4> {
        let known = self.known.as_ref().filter(|((of, at), _)| of == host && *at == port);
        known.map(|(_, address)| *address)
    }

    fn send(&mut self, question: Question) -> std::io::Result<()> {
        let thread = match &self.thread {
            Some(thread) => thread,
            None => self.thread.insert(Thread::start(self.resolver)?),
        };
        match thread.questions.try_send(question) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(std::io::Error::other("an earlier question waits")),
            Err(TrySendError::Disconnected(_)) => {
                self.thread = None;
                Err(std::io::Error::other("the thread that looks names up has ended"))
            }
        }
    }
}

fn ended(host: &str) -> WebError {
    let source = std::io::Error::other("the thread that looks names up has ended");
    WebError::Resolve { host: host.to_owned(), source }
}

impl Thread {
    fn start(resolver: Resolver) -> std::io::Result<Thread> {
        let (questions, to_answer) = sync_channel::<Question>(1);
        let (answers, answered) = sync_channel(1);
        let handle = thread::Builder::new().name("name-service".to_owned()).spawn(move || {
            loop {
                match to_answer.recv_timeout(LOOK) {
                    Ok((host, port)) => {
                        if answers.send(resolver(&host, port)).is_err() {
                            return;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Thread { questions, answers: answered, handle })
    }
}

impl Drop for NameService {
    fn drop(&mut self) {
        let Some(Thread { questions, answers, handle }) = self.thread.take() else { return };
        drop((questions, answers));
        // The thread ends without its channels; a lookup in progress cannot be interrupted.
        if self.asked.is_none() {
            let _ = handle.join();
        }
    }
}
