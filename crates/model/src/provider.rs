//! The real [`Model`]: credentials, then one HTTP exchange.
//!
//! Must never keep a resolved credential. The scripted model is `demo`; it is
//! asked without either.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crew_base::model::{Api, ModelEvent, ModelRequest};

use crate::auth::Credentials;
use crate::demo::Demo;
use crate::http::{Http, StreamOptions};
use crate::{Model, ModelSink};

/// Answers requests of every provider of the catalogue.
pub struct Provider {
    http: Arc<Http>,
    credentials: Arc<Credentials>,
    options: Arc<StreamOptions>,
}

impl Provider {
    /// Joins the HTTP side with the credentials of the process.
    pub fn new(http: Arc<Http>, credentials: Arc<Credentials>, options: StreamOptions) -> Provider {
        Provider { http, credentials, options: Arc::new(options) }
    }
}

impl Model for Provider {
    fn stream(
        &self,
        request: ModelRequest,
        mut sink: ModelSink,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if request.model.api == Api::Demo {
            return Demo::new(100).stream(request, sink);
        }
        let (http, options) = (self.http.clone(), self.options.clone());
        let credentials = self.credentials.clone();
        Box::pin(async move {
            match credentials.resolve(&request.model).await {
                Ok(credential) => http.stream(request, credential, &options, &mut *sink).await,
                Err(error) => sink(vec![ModelEvent::Failed(error)]),
            }
        })
    }
}
